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
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Address

from sluice.declare.table import UnknownTable
from sluice.delta.places.delta_rs import store_fault
from sluice.errors import ConfigError, HistoryLost, Retryable, SluiceError, UsageError
from sluice.pages.elements import Page, html
from sluice.read.lake import Lake, open_lake
from sluice.read.stored.snapshot import NotBuilt
from sluice.serve.access import Access, Token
from sluice.serve.answers import Answer, Format, Refused, negotiate
from sluice.serve.changes import Stream, follow
from sluice.serve.pages import PAGES
from sluice.serve.questions import Limits, Parameter, Question, Route, refuse
from sluice.serve.routes import ROUTES, openapi, page
from sluice.serve.states import metrics

LONGEST = 8_000  # bytes of a request's parameters
LOOK = 1.0  # seconds between looks at the configuration's files
NAMES = {"json": Format.JSON, "ndjson": Format.NDJSON, "csv": Format.CSV, "arrow": Format.ARROW}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
PAGES_POLICY = POLICY + "; img-src data:; script-src 'nonce-{nonce}'; form-action 'self'"
PLAIN = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
STATUSES: tuple[tuple[type[SluiceError], HTTPStatus], ...] = (
    (UnknownTable, HTTPStatus.NOT_FOUND),
    (NotBuilt, HTTPStatus.NOT_FOUND),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (HistoryLost, HTTPStatus.GONE),
    (Retryable, HTTPStatus.SERVICE_UNAVAILABLE),
    (SluiceError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
log = logging.getLogger(__name__)
T = TypeVar("T")


class Served:
    """The lake of a folder of configuration, as its files are now.

    If they have mistakes that leave nothing to serve, the lake of before is served on.
    """

    def __init__(self, config: str | Path) -> None:
        self._config, self._lock = Path(config), Lock()
        self._looked, self._stamps = time.monotonic(), self._stamp()
        self._lake = open_lake(config)

    @property
    def lake(self) -> Lake:
        """The lake; files of the configuration are looked at once a second."""
        with self._lock:
            if time.monotonic() - self._looked > LOOK:
                self._looked = time.monotonic()
                if (stamps := self._stamp()) != self._stamps:
                    self._stamps = stamps
                    try:
                        self._lake = open_lake(self._config)
                    except ConfigError as error:
                        log.warning("the changed configuration is not served: %s", error)
            return self._lake

    def _stamp(self) -> list[tuple[str, int, int]]:
        files = sorted(self._config.rglob("*.y*ml"))
        return [(str(f), (at := f.stat()).st_mtime_ns, at.st_size) for f in files]


@dataclass
class Server:
    """A served lake, with its access and limits; counts what it answers."""

    served: Served
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    threads: int = field(default_factory=lambda: min(8, 2 * (os.cpu_count() or 1)))

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads, "read")
        self._waiting = self._streams = 0
        self._answered = Counter[tuple[str, int]]()
        self._seconds = defaultdict[str, float](float)

    def app(self) -> Starlette:
        """Return the server as an ASGI application."""
        routes = [Address(r.path, partial(self._answer, r), methods=["GET"]) for r in ROUTES]
        routes += [
            *(Address(p, partial(self._page, p, build, known)) for p, build, known in PAGES),
            Address("/v1/openapi.json", self._openapi),
            Address("/v1/docs", self._docs),
            Address("/healthz", self._health),
            Address("/metrics", self._metrics),
        ]
        handlers: Any = {
            HTTPException: self._no_such_address,
            Refused: self._refused,
            SluiceError: self._refused,
        }
        return Starlette(routes=routes, exception_handlers=handlers)

    async def _answer(self, route: Route, request: Request) -> Response:
        return await self._guard(route.path, self._read(route, request))

    async def _guard(self, path: str, answering: Awaitable[Response]) -> Response:
        """Return a response, or the refusal that it ended in; count both."""
        begun, status = time.monotonic(), HTTPStatus.INTERNAL_SERVER_ERROR
        try:
            response = await answering
            status = HTTPStatus(response.status_code)
        except (Refused, SluiceError) as error:
            response = self._refusal(error)
            status = HTTPStatus(response.status_code)
        except Exception as error:  # noqa: BLE001  # of a read: it must not end in a trace
            response = self._unforeseen(error)
        finally:
            self._answered[path, int(status)] += 1
            self._seconds[path] += time.monotonic() - begun
        return response

    async def _read(self, route: Route, request: Request) -> Response:
        token = self.access.admit(request.headers)
        asked = partial(self._question, route, request, token)
        format_ = _format(route, request)
        if format_ is Format.EVENTS:
            return await self._stream(asked, request.headers.get("last-event-id"))
        return _response(await self._work(lambda: route.answer(asked(format_))))

    def _question(self, route: Route, request: Request, token: Token, format_: Format) -> Question:
        given = request.scope.get("query_string", b"")
        if len(given) > LONGEST:
            what = f"the parameters have more than {LONGEST} bytes"
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, what)
        values = route.read(parse_qsl(given.decode("latin-1"), keep_blank_values=True))
        name = request.path_params.get("table", "")
        return Question(self.served.lake, token, self.limits, values, format_, name)

    async def _work(self, read: Callable[[], T]) -> T:
        """Return what a read in a thread returns. Raises Refused if it must wait too long."""
        if self._waiting >= 4 * self.threads:
            wait = {"Retry-After": "1"}
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many requests wait", "", wait)
        self._waiting += 1
        reading = asyncio.get_running_loop().run_in_executor(self._pool, read)
        reading.add_done_callback(self._end)
        try:
            return await asyncio.wait_for(asyncio.shield(reading), self.limits.seconds)
        except TimeoutError:
            what = f"the request took longer than {self.limits.seconds:g} s"
            hint = "narrow its key, range or columns, or ask for fewer rows"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, what, hint) from None

    def _end(self, reading: "asyncio.Future[Any]") -> None:
        self._waiting -= 1
        if not reading.cancelled():
            reading.exception()  # of a read that nobody waits for any more

    async def _stream(self, asked: Callable[[Format], Question], last: str | None) -> Response:
        if self._streams >= self.limits.streams:
            what = f"{self.limits.streams} streams are open already"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, what, "close one, or ask page by page")

        def begin() -> tuple[Stream, bytes]:
            question = asked(Format.EVENTS)
            if others := {"limit", "run", "to_version"} & question.values.keys():
                raise refuse(f"events go on without end: leave out {', '.join(sorted(others))}")
            stream = Stream(question, last or question.get("cursor"))
            return stream, stream.take()

        self._streams += 1
        try:
            stream, first = await self._work(begin)
        except BaseException:
            self._streams -= 1
            raise
        body = self._counted(follow(stream, first, self._work))
        return StreamingResponse(body, media_type=Format.EVENTS, headers=PLAIN)

    async def _counted(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for one in events:
                yield one
        finally:
            self._streams -= 1

    async def _openapi(self, request: Request) -> Response:
        self.access.admit(request.headers)
        return _response(openapi())

    async def _docs(self, request: Request) -> Response:
        self.access.admit(request.headers)
        headers = {**PLAIN, "Content-Security-Policy": POLICY}
        return Response(html(page()), headers=headers, media_type="text/html")

    async def _page(
        self,
        path: str,
        build: Callable[[Question], Page | bytes],
        parameters: tuple[Parameter, ...],
        request: Request,
    ) -> Response:
        async def show() -> Response:
            token, nonce = self.access.admit(request.headers), secrets.token_urlsafe(16)
            route = Route(path, "", openapi, parameters)

            def write() -> bytes:
                made = build(self._question(route, request, token, Format.JSON))
                return made if isinstance(made, bytes) else html(made, nonce).encode()

            headers = {**PLAIN, "Content-Security-Policy": PAGES_POLICY.format(nonce=nonce)}
            return Response(await self._work(write), headers=headers, media_type="text/html")

        return await self._guard(path, show())

    async def _health(self, _: Request) -> Response:
        return _response(Answer(b'{"status": "ok"}'))

    async def _metrics(self, request: Request) -> Response:
        token = self.access.admit(request.headers)

        def read() -> str:
            asked = Question(self.served.lake, token, self.limits, {}, Format.JSON)
            return "".join(metrics(asked))

        text = await self._work(read)
        text += "# HELP sluice_requests_total Requests.\n# TYPE sluice_requests_total counter\n"
        for (path, code), count in sorted(self._answered.items()):
            text += f'sluice_requests_total{{route="{path}",code="{code}"}} {count}\n'
        text += "# HELP sluice_request_seconds_total Time that requests took.\n"
        text += "# TYPE sluice_request_seconds_total counter\n"
        for path, seconds in sorted(self._seconds.items()):
            text += f'sluice_request_seconds_total{{route="{path}"}} {seconds:.6f}\n'
        text += "# HELP sluice_streams Open streams of events.\n# TYPE sluice_streams gauge\n"
        text += f"sluice_streams {self._streams}\n"
        return Response(text, media_type="text/plain; version=0.0.4", headers=PLAIN)

    async def _refused(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, Refused | SluiceError)
        return self._refusal(error)

    def _refusal(self, error: Refused | SluiceError) -> Response:
        if isinstance(error, SluiceError):
            status = next(status for of, status in STATUSES if isinstance(error, of))
            error = Refused(status, error.message, error.hint)
        return _response(error.answer())

    async def _no_such_address(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        hint = "`/v1/docs` lists the addresses; all are read by GET"
        return _response(Refused(error.status_code, error.detail, hint).answer())

    def _unforeseen(self, error: Exception) -> Response:
        if known := store_fault(error):
            return self._refusal(known)
        number = secrets.token_hex(4)
        log.error("unforeseen failure %s", number, exc_info=error)
        what = f"unforeseen failure {number}"
        hint = "the server's log says more"
        return _response(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, what, hint).answer())


def _format(route: Route, request: Request) -> Format:
    """Return the format of an answer: that of the parameter `format`, or the preferred one."""
    chosen = request.query_params.get("format")
    if chosen is None:
        return negotiate(request.headers.get("accept", ""), route.formats)
    offered = {name: f for name, f in NAMES.items() if f in route.formats}
    if chosen not in offered:
        raise refuse(f"format={chosen}: the formats here are {', '.join(offered)}")
    return offered[chosen]


def _response(answer: Answer) -> Response:
    headers = {**PLAIN, **answer.headers}
    if isinstance(answer.body, bytes):
        return Response(answer.body, answer.status, headers, answer.media)
    return StreamingResponse(answer.body, answer.status, headers, answer.media)
