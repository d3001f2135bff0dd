"""The server: requests come in, are admitted, read in threads, and answered.

Reads run in a few threads, so that a long one delays no other. A request waits for its answer for
a limited time; while all threads are busy and as many requests wait, further ones are refused.
Nothing that a request contains ends in a stack trace: what is unforeseen is logged here, and the
client gets its number.
"""

import asyncio
import logging
import os
import secrets
import time
from asyncio import TimerHandle, Transport
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from socket import AF_INET, AF_INET6, IPPROTO_TCP, TCP_NODELAY, create_server, socket
from threading import Lock
from types import FrameType
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote_plus

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route as Address
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sluice.declare.project import load_sound
from sluice.declare.project_cache import SOURCES, Noting, Stamp, stamps
from sluice.declare.table import UnknownTable
from sluice.delta.places.delta_rs import store_fault
from sluice.delta.places.lake_layout import DamagedLog, MissingFiles
from sluice.errors import ConfigError, HistoryLost, Retryable, SluiceError, UsageError
from sluice.pages import Page, html
from sluice.read.changelog import TooManyChanges
from sluice.read.lake import Lake
from sluice.read.snapshot import NotBuilt
from sluice.serve.access import NOBODY, Access, Token
from sluice.serve.answers import (
    Answer,
    Format,
    Refused,
    Says,
    negotiate,
    show,
    to_json,
    without_paths,
)
from sluice.serve.changes import events
from sluice.serve.pages import PAGES, refusal
from sluice.serve.questions import Limits, Question, Route, refuse, refuse_many, took_long
from sluice.serve.readers import Readers, hand_over
from sluice.serve.routes import DESCRIPTIONS, ROUTES
from sluice.serve.states import metrics

LONGEST = 8_000  # bytes of a request's parameters
LOOK = 1.0  # seconds between looks at the configuration's files
HEADERS = 10.0  # seconds in which a client sends a request
LARGEST = 512_000  # bytes of a request's headers
SLICE = 256_000  # bytes of an answer that are sent at a time
CONNECTIONS = 400  # besides those of streams
POLL, PING = 0.3, 15.0  # seconds between looks at a followed table, and between signs of life
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; "
    "img-src data:; form-action 'self'"
)
PLAIN = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
STATUSES: tuple[tuple[type[SluiceError], HTTPStatus], ...] = (
    (UnknownTable, HTTPStatus.NOT_FOUND),
    (NotBuilt, HTTPStatus.NOT_FOUND),
    (ConfigError, HTTPStatus.NOT_FOUND),  # of the table's pipeline
    (TooManyChanges, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (DamagedLog, HTTPStatus.INTERNAL_SERVER_ERROR),
    (MissingFiles, HTTPStatus.INTERNAL_SERVER_ERROR),
    (HistoryLost, HTTPStatus.GONE),
    (Retryable, HTTPStatus.SERVICE_UNAVAILABLE),
    (SluiceError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
ENDS = Refused(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the server ends before it could answer",
    "ask again once it runs",
    {"Retry-After": "1"},
    Retryable.__name__,
)
log = logging.getLogger(__name__)
T = TypeVar("T")


class Served:
    """The lake of a folder of configuration, or of a spec, as its files are now.

    If they have mistakes that leave nothing to serve, the lake of before is served on. `unread`:
    these mistakes.
    """

    unread: SluiceError | OSError | None = None

    def __init__(self, config: str | Path) -> None:
        self._config, self._lock = Path(config), Lock()
        self._noted = Noting()  # the folders of specs that the configuration names
        self._looked, self._stamps = time.monotonic(), self._stamp()
        self._lake = self._open()

    @property
    def lake(self) -> Lake:
        """The lake; files of the configuration are looked at once a second."""
        with self._lock:
            if time.monotonic() - self._looked > LOOK:
                self._looked = time.monotonic()
                if (found := self._stamp()) != self._stamps:
                    self._stamps = found
                    try:
                        self._lake, self.unread = self._open(), None
                    except (SluiceError, OSError) as error:
                        log.warning("the changed configuration is not served: %s", error)
                        self.unread = error
            return self._lake

    def _open(self) -> Lake:
        return Lake(load_sound(self._config, environ=self._noted)[0])

    def _stamp(self) -> list[tuple[Stamp, ...]]:
        specs = sorted(self._noted.folders)
        return [stamps(self._config), *(stamps(Path(folder), SOURCES) for folder in specs)]


@dataclass
class Server:
    """A served lake, with its access and limits; counts what it answers."""

    served: Served
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    threads: int = field(default_factory=lambda: min(8, 2 * (os.cpu_count() or 1)))

    def __post_init__(self) -> None:
        self._readers = Readers(self.threads)
        self._waiting = self._streams = self._held = 0
        self.is_ending = False
        self._answered = Counter[tuple[str, int]]()
        self._seconds = defaultdict[str, float](float)

    def app(self) -> Starlette:
        """Return the server as an ASGI application."""
        own = Route("/metrics", "", self._metrics, formats=(Format.TEXT,))
        routes = [
            Address(route.path, partial(self._answer, route), methods=["GET"])
            for route in (*ROUTES, *PAGES, *DESCRIPTIONS, own)
        ]
        health = Address("/healthz", self._health)
        handlers = {HTTPException: lambda r, e: _refusal(e, is_page=_wants_page(r))}
        quiet = Middleware(Ending, of=self)
        return Starlette(routes=[*routes, health], exception_handlers=handlers, middleware=[quiet])

    async def _answer(self, route: Route, request: Request) -> Response:
        """Return the answer to a request, or the refusal that it ended in; count both."""
        begun = time.monotonic()
        try:
            response = await self._read(route, request)
        except Exception as error:  # noqa: BLE001  # of a read: it must not end in a trace
            query = request.scope.get("query_string", b"").decode("latin-1")
            is_page = _wants_page(request) and route.formats == (Format.HTML,)
            given = f"{request.url.path} {unquote_plus(query)}"
            response = _refusal(error, self._says(given), is_page=is_page)
        self._answered[route.path, response.status_code] += 1
        self._seconds[route.path] += time.monotonic() - begun
        return response

    async def _read(self, route: Route, request: Request) -> Response:
        token, given = self.access.admit(request.headers), request.scope.get("query_string", b"")
        if len(given) > LONGEST:
            what = f"the parameters have more than {LONGEST} bytes"
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, what)
        try:
            pairs = parse_qsl(given.decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise refuse("the parameters are no text in UTF-8", "write é as %C3%A9") from None
        format_ = _format(route, dict(pairs).get("format"), request.headers.get("accept", ""))
        name = request.path_params.get("table", "")

        def asked() -> Question:
            return self._question(token, route.read(pairs), format_, name)

        if format_ is Format.EVENTS:
            return await self._stream(asked, request)
        if self._waiting >= 4 * self.threads:
            raise refuse_many("too many requests wait")
        self._waiting += 1
        response = await self._work(lambda: _respond(route.answer(asked())), self._wait_no_more)
        if isinstance(response, Parts):
            if self._held and self._held + response.size > 2 * self.limits.bytes:
                raise refuse_many("too many large answers are being sent")
            response.hold = self._hold
        return response

    def _hold(self, size: int) -> None:
        """Count bytes of answers that are being sent."""
        self._held += size

    def _question(
        self, token: Token, values: Mapping[str, Any], format_: Format, name: str = ""
    ) -> Question:
        lake, unread = self.served.lake, self.served.unread
        return Question(lake, token, self.limits, values, format_, name, unread=unread)

    async def _work(self, read: Callable[[], T], ended: Callable[[], None] = lambda: None) -> T:
        """Return what a read in a thread returns; `ended` is called once a thread is free.

        Raises Refused if it must wait too long.
        """
        answered = self._readers.begin(read, ended)
        loop, late = asyncio.get_running_loop(), took_long(self.limits)
        limit = loop.call_later(self.limits.seconds, hand_over, answered, None, late)
        try:
            return await answered
        finally:
            limit.cancel()
            del answered, late  # their traces hold this frame, and all that the read had

    def _wait_no_more(self) -> None:
        self._waiting -= 1

    async def _stream(self, asked: Callable[[], Question], request: Request) -> Response:
        if self._streams >= self.limits.streams:
            what = f"{self.limits.streams} streams are open already"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, what, "close one, or ask page by page")

        def begin() -> tuple[Iterator[bytes], bytes]:
            question, last = asked(), request.headers.get("last-event-id")
            stream = events(question, question.get("cursor") if last is None else last)
            return stream, next(stream)

        self._streams += 1
        try:
            stream, first = await self._work(begin)
        except BaseException:
            self._streams -= 1
            raise
        is_ended = request.method == "HEAD"
        return Stream(self._follow(stream, first, is_ended=is_ended), self._end_stream)

    def _end_stream(self) -> None:
        self._streams -= 1

    async def _follow(
        self, stream: Iterator[bytes], first: bytes, *, is_ended: bool = False
    ) -> AsyncGenerator[bytes]:
        """Yield a stream's events as they arise. Ends with an error, or with the server."""
        yield first or b": begin\n\n"
        heard = time.monotonic()
        try:
            while not (is_ended or self.is_ending):
                found = await self._readers.begin(partial(next, stream))
                if not found and time.monotonic() - heard > PING:
                    found = b": still here\n\n"
                if found:
                    yield found
                    heard = time.monotonic()
                else:
                    await asyncio.sleep(POLL)
        except Exception as error:  # noqa: BLE001  # of a read: it must not end in a trace
            refused = _refused(error)
            said = {"error": refused.as_json(self._says()), "status": refused.status}
            yield b"event: error\ndata: " + to_json(said) + b"\n\n"

    async def _health(self, request: Request) -> Response:
        """Say whether the declarations are served as they are now; to who may see all, also why."""
        try:
            token = self.access.admit(request.headers)
        except Refused:
            token = NOBODY
        asked = await asyncio.to_thread(self._question, token, {}, Format.JSON)
        if asked.unread is None:
            return JSONResponse({"status": "ok"})
        said = {"status": "not ready", "reasons": asked.why_unread}
        return JSONResponse(said, HTTPStatus.SERVICE_UNAVAILABLE)

    def _says(self, given: str = "") -> Says:
        """Return how messages are shown to who sent a request."""
        return partial(show, self.served.lake.project, given=given)

    def _metrics(self, asked: Question) -> Answer:
        requests = {
            f'{{route="{path}",code="{code}"}}': count
            for (path, code), count in sorted(self._answered.items())
        }
        seconds = {f'{{route="{path}"}}': took for path, took in sorted(self._seconds.items())}
        own = (
            ("requests_total", "counter", "Requests.", requests),
            ("request_seconds_total", "counter", "Time that requests took.", seconds),
            ("streams", "gauge", "Open streams of events.", {"": self._streams}),
        )
        return Answer("".join(metrics(asked, own)).encode(), "text/plain; version=0.0.4")


class Parts(StreamingResponse):
    """An answer in parts. What they are made of is let go at once, also if the client has gone.

    `size`: bytes that it keeps until then. `hold` is called with them, and with as many less then.
    """

    def __init__(
        self, parts: Iterator[bytes | memoryview], of: Answer, headers: Mapping[str, str]
    ) -> None:
        slices = _slice(parts)
        body = slices if of.media in (Format.JSON, Format.NDJSON, Format.CSV) else _at_once(slices)
        super().__init__(body, of.status, headers, of.media)
        self._parts, self.size = parts, of.size
        self.hold: Callable[[int], None] = lambda _: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.hold(self.size)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.hold(-self.size)
            if isinstance(self._parts, Generator):
                with suppress(ValueError):  # a thread is still at the next part
                    self._parts.close()


class Stream(StreamingResponse):
    """Events. `end` is called when they have ended, also if the client went before the first."""

    def __init__(self, found: AsyncGenerator[bytes], end: Callable[[], None]) -> None:
        super().__init__(found, headers=PLAIN, media_type=Format.EVENTS)
        self._found, self._end = found, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()
            await self._found.aclose()


@dataclass(frozen=True)
class Ending:
    """Application that lets a server end in peace: who waits for an answer may ask again."""

    app: ASGIApp
    of: Server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = list[Message]()

        async def note(message: Message) -> None:
            begun[:] = [message]
            await send(message)

        try:
            await self.app(scope, receive, note)
        except asyncio.CancelledError:
            if not self.of.is_ending:
                raise
            if scope["type"] == "http" and not begun:
                await _refusal(ENDS)(scope, receive, send)


class Requests(HttpToolsProtocol):
    """Requests of one connection; what can't be read as one is refused in words.

    A client that does not send its request in time, or takes nothing of an answer for `patience`
    seconds, is left. So it keeps neither a thread nor memory.
    """

    def __init__(self, patience: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._patience, self._unread = patience, 0
        self._sends: TimerHandle | None = None
        self._takes: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._sends = self.loop.call_later(HEADERS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._sends)
        _cancel(self._takes)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += len(data) if self._sends else 0
        if self._unread > LARGEST:
            self.send_400_response("The headers are too long.")
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._sends = self._sends or self.loop.call_later(HEADERS, self.transport.abort)

    def on_headers_complete(self) -> None:
        _cancel(self._sends)
        self._sends, self._unread = None, 0
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._takes = self.loop.call_later(self._patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._takes)

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(f"{msg} It is no request, or its address is longer than 64 KB.")


def _cancel(timer: TimerHandle | None) -> None:
    if timer:
        timer.cancel()


class Listener(uvicorn.Server):
    """Listener that has a server end its streams before it waits for the last answers."""

    def __init__(self, of: Server, **settings: Any) -> None:
        config = uvicorn.Config(
            of.app(),
            http=partial(Requests, max(of.limits.seconds, HEADERS)),  # type: ignore[arg-type]
            limit_concurrency=of.limits.streams + CONNECTIONS,
            server_header=False,
            **settings,
        )
        super().__init__(config)
        self.of = of

    def bind(self) -> int:
        """Listen from now on, and return the port. Raises UsageError if that is not possible."""
        host, port = self.config.host, self.config.port
        family = AF_INET6 if ":" in host else AF_INET
        try:
            self._listening = create_server((host, port), family=family)
            self._listening.setsockopt(IPPROTO_TCP, TCP_NODELAY, True)  # or answers wait 40 ms
        except OSError as error:
            why = str(error.strerror).partition(" (")[0]
            raise UsageError(
                f"the server can't listen on {host}, port {port}: {why}",
                hint="give another --host or --port; port 0 is any that is free",
            ) from None
        return int(self._listening.getsockname()[1])

    def answer(self) -> None:
        """Answer requests until a signal ends the process."""
        self.run([self._listening])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, which takes a few seconds at most; further signals change nothing."""
        if not self.should_exit:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self.of.is_ending = True
        await super().shutdown(sockets)


def _wants_page(request: Request) -> bool:
    return Format.HTML in request.headers.get("accept", "")


def _format(route: Route, chosen: str | None, accept: str) -> Format:
    """Return the format of an answer: that of the parameter `format`, or the preferred one."""
    if chosen is None:
        return negotiate(accept, route.formats)
    offered = {format_.name.lower(): format_ for format_ in route.formats}
    if chosen not in offered:
        raise refuse(f"format={chosen}: the formats here are {', '.join(offered)}")
    return offered[chosen]


def _respond(answer: Answer | Page) -> Response:
    if isinstance(answer, Page):
        nonce = secrets.token_urlsafe(16)
        policy = f"{POLICY}; script-src 'nonce-{nonce}'"
        headers = {**PLAIN, "Content-Security-Policy": policy}
        return Response(html(answer, nonce), headers=headers, media_type=Format.HTML)
    headers = {**PLAIN, "Content-Security-Policy": POLICY, **answer.headers}
    if not isinstance(answer.body, bytes):
        return Parts(answer.body, answer, headers)
    if len(answer.body) <= SLICE:
        return Response(answer.body, answer.status, headers, answer.media)
    headers["Content-Length"] = str(len(answer.body))
    return Parts(iter([answer.body]), replace(answer, size=len(answer.body)), headers)


def _slice(parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield parts so small that a client which takes them slowly is seen to take some."""
    for part in parts:
        for begin in range(0, len(part), SLICE):
            yield part[begin : begin + SLICE]


async def _at_once(parts: Iterable[bytes | memoryview]) -> AsyncGenerator[bytes | memoryview]:
    """Yield parts that are made sooner than a thread could be asked for them."""
    for part in parts:
        yield part


def _refusal(error: Exception, says: Says = without_paths, *, is_page: bool = False) -> Response:
    refused = _refused(error)
    if not is_page:
        return _respond(refused.answer(says))
    response = _respond(refusal(refused, says))
    response.status_code = refused.status
    response.headers.update(refused.headers)
    return response


def _refused(error: Exception) -> Refused:
    """Return what a client gets of an error."""
    if not isinstance(error, SluiceError | Refused | HTTPException):
        error = store_fault(error) or error
    if isinstance(error, SluiceError):
        return Refused.of(next(status for of, status in STATUSES if isinstance(error, of)), error)
    if isinstance(error, HTTPException):
        hint = "`/v1/docs` lists the addresses; all are read by GET"
        return Refused(error.status_code, error.detail, hint)
    if isinstance(error, Refused):
        return error
    number = secrets.token_hex(4)
    log.error("unforeseen failure %s", number, exc_info=error)
    what = f"unforeseen failure {number}"
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, what, "the server's log says more")
