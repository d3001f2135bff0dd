"""A proxy before a store: it counts requests and bytes, and does harm when it is told to.

It is a process of its own, because some calls of delta-rs let no other thread of theirs work. A
rule names requests by their method and path, and what happens to them: an answer in the store's
place, no answer, an answer that is lost or cut after the store has done its work.
"""

import http.client
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, BrokenBarrierError, Lock
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request as Asked
from urllib.request import urlopen

BY_HOP = ("connection", "keep-alive", "transfer-encoding", "expect", "content-length")
DELAY = 0.2  # seconds
MEETING = 30  # seconds that a request waits for its rival
CONTROL = "/__control"
COMMIT = r"/_delta_log/\d{20}\.json$"
LIST = r"list-type=2|comp=list"


class Harm(StrEnum):
    """What happens to a request."""

    NONE = "none"
    BUSY = "busy"  # 503 SlowDown, in the store's place
    FAULT = "fault"  # 500 InternalError, in the store's place
    DROPPED = "dropped"  # the connection closes before the store hears of it
    LOST = "lost"  # the store does it, and the connection closes before its answer
    CUT = "cut"  # the answer ends in the middle of its body
    LATE = "late"  # the store hears of it a little later
    UNCHECKED = "unchecked"  # 400 for a body without a checksum, as where objects are locked
    BLIND = "blind"  # the first two of a name meet, and one that comes too late hears of success


REFUSALS: Mapping[str, tuple[int, str, str]] = {
    Harm.BUSY: (503, "SlowDown", "harm"),
    Harm.FAULT: (500, "InternalError", "harm"),
    Harm.UNCHECKED: (400, "InvalidRequest", "Content-MD5 OR x-amz-checksum- is required"),
}
CHECKED = r"content-md5|x-amz-checksum-|x-amz-trailer|x-amz-copy-source"


@dataclass
class Rule:
    """Harm to the first `times` requests with a method and a path that match; 0 means all."""

    harm: str
    method: str = ""
    path: str = ""
    times: int = 0
    done: int = 0

    def meets(self, method: str, path: str) -> bool:
        is_due = not self.times or self.done < self.times
        return (
            is_due
            and re.fullmatch(self.method or ".*", method) is not None
            and (re.search(self.path, unquote(path)) is not None)
        )


@dataclass(frozen=True)
class Seen:
    """One request that went through."""

    method: str
    path: str
    range: str
    harm: str

    @property
    def is_list(self) -> bool:
        return re.search(LIST, self.path) is not None

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path)


@dataclass
class Proxy:
    """The proxy as tests use it."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def harming(self, *rules: Rule) -> Iterator[None]:
        """While these rules hold. What went through before is forgotten."""
        self.clear()
        self._ask([asdict(rule) for rule in rules])
        try:
            yield
        finally:
            self._ask([])

    def clear(self) -> None:
        self._ask(None)

    @property
    def requests(self) -> list[Seen]:
        return [Seen(**one) for one in self._ask("seen")["requests"]]

    @property
    def sent(self) -> int:
        """Bytes that went to the client."""
        return int(self._ask("seen")["sent"])

    @property
    def done(self) -> Counter[str]:
        return Counter(request.harm for request in self.requests)

    def _ask(self, what: Any) -> dict[str, Any]:
        asked = Asked(self.endpoint + CONTROL, json.dumps(what).encode(), method="POST")
        with urlopen(asked) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def running(to: str) -> Iterator[Proxy]:
    """A proxy on a free port of loopback before the store at `to`."""
    command = [sys.executable, __file__, to]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Proxy(int(process.stdout.readline()))
        finally:
            process.kill()


@dataclass
class _State:
    """The proxy's own side."""

    to: str
    rules: list[Rule] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    sent: int = 0
    lock: Lock = field(default_factory=Lock)
    meetings: defaultdict[str, Barrier] = field(
        default_factory=lambda: defaultdict(partial(Barrier, 2, timeout=MEETING))
    )

    def meet(self, name: str) -> None:
        """Return when a second request of this name has come; a third one is late, and goes on."""
        with self.lock:
            meeting = self.meetings[name]
        with suppress(BrokenBarrierError):
            meeting.wait()
        meeting.abort()

    def judged(self, method: str, path: str, range_: str) -> str:
        with self.lock:
            rule = next((r for r in self.rules if r.meets(method, path)), None)
            if rule:
                rule.done += 1
            harm = rule.harm if rule else Harm.NONE
            self.requests.append(Seen(method, path, range_, harm))
            return harm

    def count(self, sent: int) -> None:
        with self.lock:
            self.sent += sent

    def control(self, asked: Any) -> dict[str, Any]:
        with self.lock:
            if asked is None:
                self.requests, self.sent = [], 0
            elif isinstance(asked, list):
                self.rules = [Rule(**rule) for rule in asked]
            return {"requests": [asdict(r) for r in self.requests], "sent": self.sent}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    of: _State
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are sent one after the other

    def _take(self) -> None:
        body = self._body()
        if self.path == CONTROL:
            text = json.dumps(self.of.control(json.loads(body))).encode()
            self._reply(200, [], text, len(text))
            return
        harm = self.of.judged(self.command, self.path, self.headers.get("range", ""))
        if harm in (Harm.BUSY, Harm.FAULT) or (harm == Harm.UNCHECKED and self._lacks_checksum()):
            self._refuse(harm)
        elif harm == Harm.DROPPED:
            self.close_connection = True
        else:
            self._forward(body, harm)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _take  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _lacks_checksum(self) -> bool:
        names = " ".join(self.headers).lower()
        return self.command == "PUT" and not re.search(CHECKED, names)

    def _refuse(self, harm: str) -> None:
        status, code, why = REFUSALS[harm]
        text = f"<Error><Code>{code}</Code><Message>{why}</Message></Error>".encode()
        self._reply(status, [("Content-Type", "application/xml")], text, len(text))

    def _forward(self, body: bytes, harm: str) -> None:
        if harm == Harm.LATE:
            time.sleep(DELAY)
        if harm == Harm.BLIND:
            self.of.meet(urlsplit(self.path).path)
        headers = {n: v for n, v in self.headers.items() if n.lower() not in BY_HOP}
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        try:
            status, found, content = self._asked(body, headers)
        except OSError:
            self.close_connection = True
            return
        if harm == Harm.BLIND and status in (409, 412):
            status, found, content = 200, [("ETag", '"0"')], b""
        if harm == Harm.LOST:
            self.close_connection = True
            return
        length = next((v for n, v in found if n.lower() == "content-length"), len(content))
        kept = content[: len(content) // 2] if harm == Harm.CUT else content
        self._reply(status, found, kept, int(length))
        if harm == Harm.CUT:
            self.close_connection = True

    def _asked(
        self, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(urlsplit(self.of.to).netloc, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _reply(
        self, status: int, headers: list[tuple[str, str]], content: bytes, length: int
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in BY_HOP:
                self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
            if self.path != CONTROL:
                self.of.count(len(content))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay silent."""


def main(to: str) -> None:
    class Handler(_Handler):
        of = _State(to)

    server = _Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
