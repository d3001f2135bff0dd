"""What is said of tables: states, freshness, declarations, explanations."""

import json
import shutil
from html import unescape
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from psutil import Process
from starlette.testclient import TestClient
from tests.serve.conftest import SCHEMA, Visitor, deliver, event
from tests.support.landed import Landed, folder_of

from sluice.cli.main import main
from sluice.delta.places.lake_layout import layout
from sluice.operate import why
from sluice.report.publish import publish
from sluice.serve import app

EVENTS = "/v1/tables/events/rows"


def test_the_status_is_that_of_the_command(visit: Visitor, copy: Landed) -> None:
    for name in ("shop.gusts", "news.clicks", "shop.best__9"):
        write_deltalake(layout(copy.project).uri(name), pa.table({"a": [1]}))
    command = ["status", "--json", "--config", str(copy.folder / "config")]
    printed = [json.loads(line) for line in CliRunner().invoke(main, command).stdout.splitlines()]
    said = visit(of=copy).get("/v1/status").json()["tables"]
    shown = [{n: one[n] for n in ("table", "kind", "rows", "state")} for one in said]
    assert shown == [{n: one[n] for n in ("table", "kind", "rows", "state")} for one in printed]
    undeclared = [one["table"] for one in said if one["state"] == "undeclared"]
    assert undeclared == ["news.clicks", "shop.gusts"]
    assert [one["table"] for one in said if one["state"] == "left behind"] == ["shop.best__9"]
    limited = visit(f"{'t' * 16} news", of=copy)
    headers = {"Authorization": f"Bearer {'t' * 16}"}
    said = limited.get("/v1/status", headers=headers).json()["tables"]
    assert [one["table"] for one in said] == ["news.clicks"]


def test_every_state_is_answered(visit: Visitor) -> None:
    client = visit()
    tables = {one["table"]: one for one in client.get("/v1/tables").json()["tables"]}
    assert tables["shop.visits"]["state"] == "up to date"
    assert tables["shop.catalogue"]["version"] is None
    one = client.get("/v1/tables/best").json()
    assert one["definition"]["limit"] == 2
    assert "paid" in str(one["definition"]["order_by"])
    assert one["inputs"] == ["shop.sums"]
    steps = client.get("/v1/plan", params={"table": "best"}).json()["steps"]
    assert {step["next"] for step in steps} <= {"nothing", "wait"}
    assert len(client.get("/v1/status").json()["tables"]) == 8
    metrics = client.get("/metrics").text
    assert 'sluice_table_rows{table="shop.products"} ' in metrics
    assert 'sluice_table_pending_inputs{table="shop.best"} 0' in metrics
    assert 'sluice_table_last_batch_seconds{table="shop.best"} ' in metrics
    assert 'sluice_requests_total{route="/v1/plan",code="200"} 1' in metrics
    assert client.get("/healthz").json() == {"status": "ok"}


def test_declarations_that_cannot_be_read_are_reported(
    copy: Landed, visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOOK", 0)
    every, one = "a" * 20, "b" * 20
    open_to_all, guarded = visit(of=copy), visit(every, f"{one} shop", of=copy)
    file = copy.folder / "config" / "pipelines" / "shop.yaml"
    sound = file.read_text()
    file.write_text(sound + "views: [}\n")
    where = f"pipelines/shop.yaml:{len(sound.splitlines()) + 1}: "

    def told(client: TestClient, path: str, token: str = "") -> tuple[int, bool]:
        """Return the status of an answer, and whether it names the line."""
        named = {"Authorization": f"Bearer {token}"} if token else {}
        found = client.get(path, headers=named)
        assert str(copy.folder) not in found.text
        if token or client is open_to_all:
            assert "can't be read" in unescape(found.text) or "healthz" in path
        return found.status_code, where in unescape(found.text)

    assert told(open_to_all, "/healthz") == told(guarded, "/healthz", every) == (503, True)
    assert told(guarded, "/healthz", one) == told(guarded, "/healthz") == (503, False)
    for path in ("/v1/status", "/"):
        assert told(open_to_all, path) == told(guarded, path, every) == (200, True)
        assert told(guarded, path, one) == (200, False)
    publish(copy.project)
    for path in ("/tables/events", "/plan", "/v1/docs", "/report/shop.events.html"):
        assert told(guarded, path, one) == (200, False)
    assert "\nsluice_unread 1\n" in open_to_all.get("/metrics").text
    assert open_to_all.get("/v1/tables/events/rows?key=7").json()["rows"]
    file.write_text(sound)
    assert open_to_all.get("/healthz").json() == {"status": "ok"}
    assert open_to_all.get("/v1/status").json()["unread"] == []
    shutil.rmtree(file.parent.parent)
    gone = open_to_all.get("/healthz")
    assert (gone.status_code, str(copy.folder) in gone.text) == (503, False)


def test_freshness_is_that_of_the_oldest_change(copy: Landed, visit: Visitor) -> None:
    deliver(copy, 9, event(24 * 9))
    copy.land(folder_of(10), a_parquet=pa.Table.from_pylist([event(24 * 10)], SCHEMA))
    copy.deliver(10)
    tables = {one["table"]: one for one in visit(of=copy).get("/v1/tables").json()["tables"]}
    found = tables["shop.visits"]
    assert found["state"] == "behind"
    assert found["freshness"]["pending"] == {"shop.events": 1}
    assert found["freshness"]["behind_since"] > found["freshness"]["last_batch_at"]


def test_a_table_whose_rows_no_key_names_shows_none(copy: Landed, visit: Visitor) -> None:
    both = copy.folder / "config" / "pipelines" / "both.yaml"
    both.write_text(
        "pipeline: both\nschedule: assets\nviews:\n  both:\n    kind: sql\n    sql: >-\n"
        "      SELECT e.id, p.name FROM shop.events e JOIN shop.products p ON e.id = p.product_id\n"
    )
    copy.project = copy.loaded()
    copy.advance("both")
    client = visit(of=copy)
    keys = {one["table"]: one["key"] for one in client.get("/v1/tables").json()["tables"]}
    assert (keys["both.both"], keys["shop.sums"]) == ([], ["user", "what"])
    assert client.get("/v1/tables/both/rows?key=7").status_code == 400


def test_why_shows_no_rows_of_other_pipelines(copy: Landed, visit: Visitor) -> None:
    news = copy.folder / "config" / "pipelines" / "news.yaml"
    news.write_text(
        "pipeline: news\nschedule: assets\nviews:\n  few:\n    kind: topk\n    from: shop.sums\n"
        '    partition_by: [user]\n    order_by: ["n desc"]\n    limit: 1\n'
    )
    copy.project = copy.loaded()
    copy.advance("few")
    client = visit("a" * 20, f"{'b' * 20} news", of=copy)
    path = "/v1/tables/few/why?partition=user=1&rank=1"
    every = client.get(path, headers={"Authorization": f"Bearer {'a' * 20}"}).json()
    own = client.get(path, headers={"Authorization": f"Bearer {'b' * 20}"}).json()
    assert {part["table"] for part in every["from"]} == {part["table"] for part in own["from"]}
    assert any(part["rows"] for part in every["from"])
    assert not any(part["rows"] for part in own["from"] if part["table"].startswith("shop."))
    assert not any(part.get("deliveries") for part in own["from"])
    assert own["reads"] == []
    assert own["after"] == every["after"]


def test_an_explanation_gives_back_the_memory_that_it_took(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, path, taken = visit(), "/v1/tables/sums/why?key=1&key=x", 200_000_000

    def trace(*_: Any) -> list[Any]:
        rows = [pa.array([b"x" * 1_000_000]) for _ in range(taken // 1_000_000)]
        assert pa.total_allocated_bytes() > taken
        return rows[:0]

    assert client.get(path).status_code == 200
    monkeypatch.setattr(why, "sources_of", trace)
    before = Process().memory_info().rss
    assert client.get(path).status_code == 200
    assert Process().memory_info().rss - before < taken // 4


def test_a_changed_configuration_is_served(
    copy: Landed, visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOOK", 0.0)
    client = visit(of=copy)
    file = copy.folder / "config" / "pipelines" / "shop.yaml"
    text = file.read_text()
    file.write_text(text[: text.index("  unranked:")])
    assert client.get("/v1/tables/unranked/count").status_code == 404
    file.write_text("pipeline: [")
    assert client.get("/v1/tables/best/count").status_code == 200
