"""Damaged tables: each says what is wrong and what to do, and hides no other."""

import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor, server_of
from tests.support.landed import Landed

from sluice.delta.places.lake_layout import layout
from sluice.serve import reads

EVENTS = "/v1/tables/events/rows"
VIEWS_OF_SUMS = ("shop.best", "shop.tied", "shop.unranked")


def damage_log(copy: Landed, name: str) -> None:
    for file in Path(copy.uri(name), "_delta_log").glob("*"):
        file.write_text('{"commitInfo":{"times')


def make_log_a_file(copy: Landed, name: str) -> None:
    log = Path(copy.uri(name), "_delta_log")
    shutil.rmtree(log)
    log.write_text("")


def lose_files(copy: Landed, name: str) -> None:
    for file in DeltaTable(copy.uri(name)).file_uris():
        Path(file).unlink()


def problems(client: TestClient, path: str) -> dict[str, str]:
    """The problems of stopped tables; the others are up to date."""
    tables = client.get(path).json()["tables"]
    stopped = {one["table"]: one["problem"] for one in tables if one["state"] == "stopped"}
    assert {one["state"] for one in tables} <= {"stopped", "up to date", "computed when it is read"}
    return stopped


@pytest.mark.parametrize(
    ("damage", "said", "reads"),
    [
        (damage_log, "the log of shop.sums can't be read: ", ["count", "at", "changes"]),
        (make_log_a_file, "the log of shop.sums can't be read: _delta_log is a file", ["count"]),
        (lose_files, "version 3 of shop.sums has lost a data file: part-", []),
    ],
)
def test_a_damaged_table_hides_no_other(
    visit: Visitor, copy: Landed, damage: Any, said: str, reads: list[str]
) -> None:
    client = visit(of=copy)
    before = client.get("/v1/tables/visits").json()
    damage(copy, "sums")
    for path in ("/v1/tables", "/v1/status"):
        stopped = problems(client, path)
        assert stopped["shop.sums"].startswith(said)
        assert {*stopped} <= {"shop.sums", *VIEWS_OF_SUMS}
    assert client.get("/v1/tables/visits").json() == before
    assert 'sluice_table_failed{table="shop.sums"} 1' in client.get("/metrics").text
    for path in ("/", "/pipelines/shop", "/tables/sums"):
        page = client.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert said in unescape(page.text)
    assert client.get("/plan", headers={"Accept": "text/html"}).status_code == 200
    for what in ("rows", "rows?order=none", "why?key=1&key=x", *reads):
        refused = client.get(f"/v1/tables/sums/{what}")
        assert refused.status_code == 500
        assert refused.json()["error"]["message"].startswith(said)
        assert "run `sluice rebuild shop.sums`" in refused.json()["error"]["hint"]
        assert str(copy.folder) not in refused.text


def test_a_table_that_lost_its_only_file_names_the_repair_of_every_read(
    visit: Visitor, copy: Landed
) -> None:
    lose_files(copy, "products")
    for what in ("rows", "changes", "why?key=1", "why-not?key=99"):
        refused = visit(of=copy).get(f"/v1/tables/products/{what}")
        assert refused.status_code == 500
        assert "of shop.products has lost a data file: " in refused.json()["error"]["message"]
        assert "run `sluice rebuild shop.products`" in refused.json()["error"]["hint"]


def test_a_damaged_commit_behind_a_checkpoint_stops_its_table_alone(
    visit: Visitor, copy: Landed
) -> None:
    client, log = visit(of=copy), Path(copy.uri("sums"), "_delta_log")
    rows = client.get("/v1/tables/sums/rows").json()
    DeltaTable(copy.uri("sums")).create_checkpoint()
    for commit in log.glob("*.json"):
        commit.write_text('{"commitInfo":{"times')
    for path in ("/v1/tables", "/v1/status"):
        stopped = problems(client, path)
        assert stopped["shop.sums"].startswith("the log of shop.sums can't be read: ")
        assert {*stopped} <= {"shop.sums", *VIEWS_OF_SUMS}
    assert client.get("/v1/tables/sums/rows").json() == rows


@pytest.mark.parametrize("damage", [damage_log, make_log_a_file])
def test_a_damaged_quarantine_stops_its_source(visit: Visitor, copy: Landed, damage: Any) -> None:
    client, name = visit(of=copy), "events__quarantine"
    write_deltalake(copy.uri(name), pa.table({"reason": ["r"]}))
    assert problems(client, "/v1/status") == {}
    damage(copy, name)
    said = "the log of shop.events__quarantine can't be read: "
    (stopped,) = problems(client, "/v1/status").items()
    assert stopped[0] == "shop.events"
    assert stopped[1].startswith(said)
    assert client.get(f"/v1/tables/{name}/rows").json()["error"]["message"].startswith(said)
    assert client.get(EVENTS).status_code == 200


def test_damaged_results_of_expectations_hide_no_table(visit: Visitor, copy: Landed) -> None:
    results = f"{layout(copy.project).quality_uri}/results"
    write_deltalake(results, pa.table({"table": ["shop.sums"]}))
    for file in Path(results, "_delta_log").glob("*"):
        file.write_text("{")
    client = visit(of=copy)
    assert problems(client, "/v1/status") == {}
    tables = client.get("/v1/status").json()["tables"]
    (said,) = {one["quality"]["unusual"][0] for one in tables}
    assert said.startswith("the log of __quality.results can't be read: ")
    assert said.endswith("restore the results from a backup, or move them away")
    for path in ("/", "/tables/sums"):
        assert client.get(path, headers={"Accept": "text/html"}).status_code == 200


class Panic(BaseException):
    """What a library in Rust raises if it gives up."""


@pytest.mark.parametrize("failure", [KeyError, Panic])
def test_an_unforeseen_failure_shows_nothing(
    shop: Landed, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    def fail(_: Any) -> None:
        raise failure("/secret/place")

    server = server_of(shop.folder)
    client = TestClient(server.app(), base_url="http://localhost")
    with monkeypatch.context() as patched:
        patched.setattr(reads, "uris_of", fail)
        for _ in range(2 * server.threads):
            found = client.get(EVENTS)
            assert found.status_code == 500
            assert "secret" not in found.text
            assert "unforeseen failure" in found.json()["error"]["message"]
    assert client.get(EVENTS).status_code == 200
