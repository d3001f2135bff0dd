"""A proxy before a store: it counts requests and bytes, and does harm when it is told to.

It is a process of its own, because some calls of delta-rs let no other thread of theirs work. A
rule names requests by their method and path, and what happens to them: an answer in the store's
place, no answer, an answer that is lost or cut after the store has done its work.
"""

import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from threading import Barrier, BrokenBarrierError, Lock
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request as Asked
from urllib.request import urlopen

from tests.support.relay import Headers, Relay, process, serve

DELAY = 0.2  # seconds
MEETING = 30  # seconds that a request waits for its rival
CONTROL = "/__control"
COMMIT = r"/_delta_log/\d{20}\.json$"
LIST = r"list-type=2|comp=list|/o\?"


class Harm(StrEnum):
    """What happens to a request."""

    NONE = "none"
    BUSY = "busy"  # 503 SlowDown, in the store's place
    FAULT = "fault"  # 500 InternalError, in the store's place
    UNKNOWN = "unknown"  # 401, as Google answers to credentials that it does not know
    MANY = "many"  # 429, as Google answers to many writes of one object
    FORBIDDEN = "forbidden"  # 403, as Google answers to an account without permission
    DROPPED = "dropped"  # the connection closes before the store hears of it
    LOST = "lost"  # the store does it, and the connection closes before its answer
    CUT = "cut"  # the answer ends in the middle of its body
    LATE = "late"  # the store hears of it a little later
    UNCHECKED = "unchecked"  # 400 for a body without a checksum, as where objects are locked
    BLIND = "blind"  # the first two of a name meet, and one that comes too late hears of success


REFUSALS: Mapping[str, tuple[int, str, str]] = {
    Harm.BUSY: (503, "SlowDown", "harm"),
    Harm.FAULT: (500, "InternalError", "harm"),
    Harm.UNKNOWN: (401, "AuthenticationRequired", "Authentication required."),
    Harm.MANY: (429, "SlowDown", "The rate of writes to the object exceeds the limit."),
    Harm.FORBIDDEN: (403, "AccessDenied", "a@b does not have storage.objects.get access"),
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
    with process("tests.support.proxy", to) as port:
        yield Proxy(port)


@dataclass
class _State:
    """The proxy's own side."""

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


class _Handler(Relay):
    of: _State

    def _take(self) -> None:
        body = self.body()
        if self.path == CONTROL:
            text = json.dumps(self.of.control(json.loads(body))).encode()
            self.reply(200, [], text, len(text))
            return
        harm = self.of.judged(self.command, self.path, self.headers.get("range", ""))
        if harm in REFUSALS and (harm != Harm.UNCHECKED or self._lacks_checksum()):
            self._refuse(harm)
        elif harm == Harm.DROPPED:
            self.close_connection = True
        else:
            self._forward(body, harm)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_PATCH = _take  # noqa: N815

    def _lacks_checksum(self) -> bool:
        names = " ".join(self.headers).lower()
        return self.command == "PUT" and not re.search(CHECKED, names)

    def _refuse(self, harm: str) -> None:
        status, code, why = REFUSALS[harm]
        text = f"<Error><Code>{code}</Code><Message>{why}</Message></Error>".encode()
        self.reply(status, [("Content-Type", "application/xml")], text, len(text))

    def _forward(self, body: bytes, harm: str) -> None:
        if harm == Harm.LATE:
            time.sleep(DELAY)
        if harm == Harm.BLIND:
            self.of.meet(urlsplit(self.path).path)
        try:
            status, found, content = self.passed_on(body)
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
        self.reply(status, found, kept, int(length))
        if harm == Harm.CUT:
            self.close_connection = True

    def reply(self, status: int, headers: Headers, content: bytes, length: int) -> None:
        super().reply(status, headers, content, length)
        if self.command != "HEAD" and self.path != CONTROL:
            self.of.count(len(content))


def main(to: str) -> None:
    _Handler.to, _Handler.of = to, _State()
    serve(_Handler)


if __name__ == "__main__":
    main(sys.argv[1])
