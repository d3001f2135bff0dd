"""A slow link: a relay of TCP on loopback, through which so many bytes a second come back."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread

AT_ONCE = 4096  # bytes


@dataclass
class SlowLink:
    """`to`: the port of what is behind it. `rate`: bytes a second of answers; 0: no bound."""

    to: int
    rate: int = 0
    _door: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        found: int = self._door.getsockname()[1]
        return found

    @contextmanager
    def open(self) -> Iterator["SlowLink"]:
        Thread(target=self._serve, daemon=True).start()
        try:
            yield self
        finally:
            self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.to))
                except OSError:  # nobody is there
                    client.close()
                    continue
                for pair in ((client, broker, False), (broker, client, True)):
                    Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_slow: bool) -> None:
        with suppress(OSError):
            while data := source.recv(AT_ONCE):
                if is_slow and self.rate:
                    time.sleep(len(data) / self.rate)
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
