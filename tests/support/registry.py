"""A stand-in for a schema registry, which speaks the part of Confluent's API that is asked."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MISSING = {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def registry(
    answers: Mapping[str, Any], heard: list[tuple[str, str | None]] | None = None
) -> Iterator[str]:
    """Yield the address of a registry with these answers, by path.

    A number is a bare status, a text the place to which it redirects. `heard`: the paths that it
    was asked for, each with the login.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if heard is not None:
                heard.append((self.path, self.headers["Authorization"]))
            found = answers.get(self.path, MISSING)
            status = found if isinstance(found, int) else 404 if found is MISSING else 200
            is_moved = isinstance(found, str)
            self.send_response(302 if is_moved else status)
            if is_moved:
                self.send_header("Location", found)
            self.end_headers()
            self.wfile.write(b"" if status is found else json.dumps(found).encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
