"""A stand-in for a schema registry, which speaks the part of Confluent's API that is asked."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MISSING = {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def registry(answers: Mapping[str, Any]) -> Iterator[str]:
    """Yield the address of a registry with these answers, by path; a number is a bare status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path, MISSING)
            status = found if isinstance(found, int) else 404 if found is MISSING else 200
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"" if status is found else json.dumps(found).encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
