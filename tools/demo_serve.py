"""The end of `make demo ARGS=--serve`: a server of the demo's lake, and five requests to it."""

import json
import subprocess
import sys

import story
from landing import CORRECTED_DEPARTMENT, DEMO_HOUSEHOLD
from sluice.serve.client import Remote

TABLES = "/v1/tables"
DELI = [("partition", f"department={CORRECTED_DEPARTMENT}")]
REQUESTS = (
    (f"{TABLES}/households/rows", [("key", DEMO_HOUSEHOLD)]),
    (f"{TABLES}/baskets/rows", [("key", DEMO_HOUSEHOLD), ("reverse", "true"), ("limit", 2)]),
    (f"{TABLES}/top_products/top", DELI),
    (f"{TABLES}/top_products/why", [*DELI, ("rank", 1), ("rows", 0)]),
    (f"{TABLES}/top_products/changes", [("limit", 2)]),
)
LONGEST = 600  # characters of an answer


def keep_serving(config: str) -> int:
    """Serve the lake until Ctrl-C, and print five requests with their answers."""
    command = [sys.executable, "-m", "sluice.cli.main", "serve", "--config", config]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            url = server.stderr.readline().strip().removesuffix("/v1/docs")
            story.chapter(f"The same tables over HTTP: {url}/v1/docs")
            for path, query in REQUESTS:
                parameters = "&".join(f"{name}={value}" for name, value in query)
                story.say(f"\ncurl '{url}{path}?{parameters}'")
                text = json.dumps(Remote(url).ask(path, query), ensure_ascii=False)
                story.say(text if len(text) <= LONGEST else f"{text[:LONGEST]} ...")
            story.say(f"in a browser: {url}/\nit answers until Ctrl-C")
            return server.wait()
        finally:
            server.terminate()
