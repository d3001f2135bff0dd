"""Three thousand hostile requests, by a seed: each is refused, or answered, with a message."""

import random
import string
from collections import Counter

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor
from tests.support.landed import Landed

from sluice.serve.pages import PAGES
from sluice.serve.routes import ROUTES

PIECES = [
    *("'", '"', "\\", "\\N", "..", "../" * 6, "/etc/passwd", "%00", "\x00", "\n\r", "é", "\ud7ff"),
    *("-1", "0", "9" * 18, "9" * 30, "1e9", "NaN", "null", "true", "[]", "{}", "((((", "))))"),
    *("' or 1=1 --", "; drop table x", "java_method('a','b')", "(select 1)", "reflect('a')"),
    *("id = 1", "price > 1", "what like '%'", "not " * 300 + "true", "(" * 900, "a.b.c.d"),
    *("s3://bucket/x", "file:///etc", "2024-01-01", "0000-00-00", "9999-12-31T23:59:59.9Z"),
    *("{interval_start}", "${HOME}", "__class__", "_sluice_id", "x" * 2_000, "current_timestamp()"),
    *("user=1", "user=\\N", "=", "user=" + "9" * 40, "W10", "eyJ9", "AAAA", "0123456789ab.1.2"),
]
TABLES = ["events", "shop.visits", "best", "sums", "catalogue", "events__quarantine", "best__state"]
HEADERS = [
    "Accept",
    "Host",
    "Last-Event-ID",
    "Authorization",
    "Range",
    "If-Match",
    "X-Forwarded-For",
]
ADDRESSES = [(route.path, route.parameters) for route in (*ROUTES, *PAGES)]
MANY = 3_000


def piece(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return "".join(chance.choices(string.printable, k=chance.randrange(40)))
    return chance.choice(PIECES)


def ask(client: TestClient, chance: random.Random) -> tuple[int, str, str]:
    """One request: its status, its answer's type, and its body."""
    table = chance.choice(TABLES) if chance.random() < 0.8 else piece(chance)
    path, parameters = chance.choice(ADDRESSES)
    path = path.replace("{table}", table)
    path = f"{path}{piece(chance)}" if chance.random() < 0.1 else path
    names = [one.name for one in parameters] or ["format"]
    query = [(chance.choice(names), piece(chance)) for _ in range(chance.randrange(1, 4))]
    query += [(piece(chance), "1")] if chance.random() < 0.05 else []
    headers = {}
    if chance.random() < 0.2:
        text = piece(chance).encode("latin-1", "replace").replace(b"\n", b" ").replace(b"\r", b" ")
        headers[chance.choice(HEADERS)] = text.replace(b"text/event", b"text")
    method = "GET" if chance.random() < 0.95 else chance.choice(["POST", "PUT", "DELETE", "TRACE"])
    url = client.base_url.copy_with(raw_path=b"/")
    request = client.build_request(method, url, headers=headers, params=query)
    try:
        request.url = request.url.copy_with(path="/" + path.lstrip("/"), query=request.url.query)
    except Exception:  # noqa: BLE001  # a path that no client can send
        return 400, "application/json", '{"error": {"message": "unsent"}}'
    found = client.send(request)
    return found.status_code, found.headers.get("content-type", ""), found.text


def refusals(client: TestClient, seed: int, many: int) -> Counter[int]:
    """Statuses of that many requests, each of which was checked."""
    chance, statuses = random.Random(seed), Counter[int]()
    for nth in range(many):
        status, media, body = ask(client, chance)
        statuses[status] += 1
        assert status < 500, (seed, nth, status, body[:300])
        if status >= 400:
            assert media == "application/json", (seed, nth, body[:300])
            assert '"message": ""' not in body
            assert "Traceback" not in body
        assert str(client.app.folder) not in body  # type: ignore[attr-defined]
    return statuses


def test_hostile_requests_are_refused(visit: Visitor, shop: Landed) -> None:
    client = visit()
    client.app.folder = shop.folder  # type: ignore[attr-defined]
    statuses = refusals(client, 1, 150)
    assert statuses[400] > 50


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("seed", range(2, 12))
def test_three_thousand_of_them(visit: Visitor, shop: Landed, seed: int) -> None:
    client = visit()
    client.app.folder = shop.folder  # type: ignore[attr-defined]
    statuses = refusals(client, seed, MANY // 10)
    assert sum(statuses.values()) == MANY // 10
    print(seed, statuses)
