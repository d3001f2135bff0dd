"""Lineage events: what a receiver hears of a run, and that none of it can stop one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.cli.previewed import PIPELINE
from tests.cli.trips import Here

from sluice.declare.column_lineage import InputColumn, made_from
from sluice.operate.delivering import delivering
from sluice.read.lake import open_lake

Event = dict[str, Any]
ROWS = [
    {"flight": n, "carrier": "AB"[n % 2], "delay": n, "at": "2024-01-01T10:00:00Z"}
    for n in range(1, 9)
]
MORE = """
  trips: {kind: cogroup, key: [carrier], window: {type: session, time: at, gap: 3 hours},
    streams: {f: {from: flights, where: delay > 1, aggregates: {n: count(*), m: max(delay)}}}}
  chained: {kind: sql, sql: "SELECT c.name AS name, count(*) AS n, max(f.delay) AS worst
    FROM flights f JOIN carriers c ON f.carrier = c.code WHERE f.delay > 2 GROUP BY c.name"}
  whole: {kind: sql, incremental: preferred, sql: "SELECT carrier, percentile(delay, 0.5) AS p,
    grouping(carrier) AS g FROM flights GROUP BY ROLLUP (carrier)"}
"""


@pytest.fixture(autouse=True)
def only_own_settings() -> Iterator[None]:
    """The client sets variables of its own, which the next test must not find."""
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        del os.environ[name]


@pytest.fixture
def project(tmp_path: Path) -> Here:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    (tmp_path / "landing/carriers").mkdir(parents=True)
    (tmp_path / "landing/carriers/a.json").write_text('{"code": "A", "name": "Aa"}\n')
    project.land("flights", 1, ROWS)
    project.land("weather", 1, [{"station": 1, "wind": 3}])
    return project


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Event]]:
    """Events that a receiver on this machine got over HTTP."""
    events: list[Event] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
    yield events
    server.shutdown()
    server.server_close()


def of_job(events: list[Event], table: str) -> list[Event]:
    return [event for event in events if event["job"]["name"] == f"trips.{table}"]


def dataset(event: Event, side: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in event[side] if one["name"].endswith(f"/trips/{name}")]
    return dict(found)


def test_each_table_starts_and_completes_with_versions_rows_and_columns(
    project: Here, heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "01890000-0000-7000-8000-000000000001"
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/trips.advance/{task}")
    project.complete("run", "trips", "--changed", "--json")
    lake = open_lake(project.folder / "config")
    tables = [t for t in lake.project.graph.tables.values() if t.is_stored]
    for table in tables:
        events = of_job(heard, table.name)
        assert [e["eventType"] for e in events[:2]] == ["START", "COMPLETE"], table.name
        assert len(events) == 2 * len({e["run"]["runId"] for e in events})
        assert all(e["run"]["facets"]["parent"]["run"]["runId"] == task for e in events)
    (_, late) = of_job(heard, "late")
    out = dataset(late, "outputs", "late")
    version = lake.table("late").version
    assert out["facets"]["version"]["datasetVersion"] == str(version)
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 3
    names = [field["name"] for field in out["facets"]["schema"]["fields"]]
    assert names == ["flight", "delay"]
    source = dataset(late, "inputs", "flights")
    assert source["facets"]["version"]["datasetVersion"] == str(lake.table("flights").version)
    fields = out["facets"]["columnLineage"]["fields"]
    (origin,) = fields["delay"]["inputFields"]
    assert (origin["name"], origin["field"]) == (source["name"], "delay")
    assert origin["transformations"][0]["subtype"] == "IDENTITY"
    (_, delays) = of_job(heard, "delays")
    named = dataset(delays, "inputs", "named")
    assert named["facets"]["version"]["datasetVersion"] == str(lake.table("named").version)
    first = of_job(heard, "flights")[1]
    assert first["run"]["facets"]["nominalTime"]["nominalStartTime"].startswith("2024-01-01")


FOLLOWED = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders: {delta: {path: crm}, schema: "id BIGINT, v BIGINT", key: [id]}
  clicks:
    kafka: {topic: clicks, connection: shop}
    value: {format: json}
    schema: "id BIGINT"
"""


def test_what_is_followed_names_the_table_of_others_with_its_version_or_the_topic(
    tmp_path: Path, heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Here(tmp_path)
    project.declare(FOLLOWED)
    crm = str(tmp_path / "crm")
    for version in range(3):
        rows = pa.table({"id": [version], "v": [version]})
        write_deltalake(crm, rows, mode="append")
        project.complete("ingest", "orders")
        done = [e for e in of_job(heard, "orders") if e["eventType"] == "COMPLETE"]
        read = [one for event in done for one in event["inputs"] if one["name"] == crm]
        assert len(read) == len(done) > 0
        assert {one["namespace"] for one in read} == {"file"}
        versions = {one["facets"]["version"]["datasetVersion"] for one in read}
        assert versions == {str(version)}
        assert {"inputStatistics": 1} in [
            {name: count["rowCount"] for name, count in one["inputFacets"].items()} for one in read
        ]
        heard.clear()
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "kafka://broker.example:9093")
    lake = open_lake(tmp_path / "config").project
    clicks = lake.graph.table("clicks")
    assert delivering(clicks).address(lake, clicks) == "kafka://broker.example:9093/clicks"


def test_a_failed_batch_has_an_event_with_its_reason(project: Here, heard: list[Event]) -> None:
    project.complete("run", "trips", "--changed")
    heard.clear()
    (project.folder / "landing/weather/2024-01-01/a.json").write_text("\0no json")
    assert project.sluice("run", "trips", "--changed").code == 4
    (failed,) = [e for e in heard if e["eventType"] == "FAIL"]
    assert failed["job"]["name"] == "trips.weather"
    assert "none of 1 now" in failed["run"]["facets"]["errorMessage"]["message"]
    run = [e["eventType"] for e in heard if e["run"]["runId"] == failed["run"]["runId"]]
    assert run == ["START", "FAIL"]


def test_a_preview_sends_nothing(project: Here, heard: list[Event]) -> None:
    project.complete("run", "trips", "--changed", "--preview")
    assert heard == []


def test_events_go_to_a_file_by_settings(project: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project.folder / "events.json"
    settings = project.folder / "openlineage.yml"
    settings.write_text(f"transport: {{type: file, log_file_path: {file}, append: true}}\n")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(settings))
    project.complete("run", "trips", "--changed")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert {e["eventType"] for e in of_job(events, "late")} == {"START", "COMPLETE"}


def test_a_receiver_that_is_away_fails_no_batch(project: Here) -> None:
    away = {
        "OPENLINEAGE_URL": "http://127.0.0.1:9",
        "OPENLINEAGE__TRANSPORT__RETRY": '{"total": 0}',
    }
    command = [sys.executable, "-m", "sluice.cli.main", "run", "trips", "--changed"]
    done = subprocess.run(
        [*command, "--config", str(project.folder / "config")],
        env={**os.environ, **away},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("a lineage event can't be sent") == 1


def test_without_settings_nothing_is_imported(project: Here) -> None:
    code = (
        "import sys\nfrom sluice.cli.main import main\n"
        f"sys.argv = 'sluice run trips --changed --config {project.folder}/config'.split()\n"
        "try: main()\nexcept SystemExit as e: print('code', e.code)\n"
        "print([name for name in sys.modules if name.startswith('openlineage')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["code 0", "[]"], done.stderr


def test_columns_are_followed_through_every_kind(project: Here) -> None:
    project.declare(PIPELINE + MORE)
    graph = open_lake(project.folder / "config").project.graph

    def made(view: str, column: str) -> set[tuple[str, str, bool]]:
        found = made_from(graph.table(view), graph)[column]
        return {(c.table.removeprefix("trips."), c.column, c.is_same) for c in found}

    assert made("named", "name") == {("carriers", "name", True)}
    assert made("delays", "s") == {("named", "delay", False)}
    assert made("worst", "rank") == {("named", "delay", False)}
    assert made("worst", "flight") == {("named", "flight", True)}
    assert made("steps", "was") == {("flights", "delay", False)}
    assert made("both", "n") == {("flights", "delay", True), ("weather", "wind", True)}
    assert made("both", "which") == set()
    assert made("pairs", "name") == {("named", "name", True)}
    assert made("latest", "window_start") == {("flights", "at", True)}
    assert made("trips", "window_end") == {("flights", "at", False)}
    assert made("trips", "m") == {("flights", "delay", False)}
    assert made("chained", "name") == {("carriers", "name", True)}
    assert made("chained", "worst") == {("flights", "delay", False)}
    assert made("whole", "p") == {("flights", "delay", False)}
    assert made_from(graph.table("late"), graph)["delay"] == {InputColumn("trips.flights", "delay")}
