"""Requests that a process of the tests takes, and passes on to the server behind it."""

import http.client
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

BY_HOP = ("connection", "keep-alive", "transfer-encoding", "expect", "content-length")
Headers = list[tuple[str, str]]
Answer = tuple[int, Headers, bytes]


class Relay(BaseHTTPRequestHandler):
    """One request. `to`: the server behind."""

    to: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are sent one after the other

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def passed_on(self, body: bytes) -> Answer:
        """The answer of the server behind to this request."""
        headers = {n: v for n, v in self.headers.items() if n.lower() not in BY_HOP}
        return self.asked(self.command, self.path, headers, body)

    def asked(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        upstream = http.client.HTTPConnection(urlsplit(self.to).netloc, timeout=60)
        try:
            is_named = "host" in (name.lower() for name in headers)
            upstream.putrequest(method, path, skip_host=is_named, skip_accept_encoding=True)
            for name, value in headers.items():
                upstream.putheader(name, value)
            if body or method in ("PUT", "POST"):
                upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def reply(self, status: int, headers: Headers, content: bytes, length: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in BY_HOP:
                self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(length))
        try:
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
        except ConnectionError:  # the client has read enough
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def serve(handler: type[Relay]) -> None:
    """Serve on a free port of loopback, which is printed first."""
    server = _Server(("127.0.0.1", 0), handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def process(module: str, to: str) -> Iterator[int]:
    """Run a module that serves before the server at `to`; yield its port."""
    command = [sys.executable, "-m", module, to]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield int(running.stdout.readline())
        finally:
            running.kill()
