"""The formats of answers: JSON, lines of JSON, CSV and Arrow, with every value."""

import csv
import json
from html import unescape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor, server_of
from tests.support.landed import Landed, folder_of

from sluice.read.lake import Lake as Reader
from sluice.serve.access import EVERYTHING
from sluice.serve.answers import Format
from sluice.serve.questions import Limits, Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = "/v1/tables/events/rows"


def test_json_keeps_every_value(visit: Visitor) -> None:
    said = visit().get(EVENTS, params={"key": 1}).json()
    assert said["rows"] == [
        {
            "id": 1,
            "user": 2,
            "what": "é&=?/",
            "at": "2024-01-01T01:00:00.000001Z",
            "price": "1234567.8901",
            "weight": 39.4,
            "size": "NaN",
            "blob": "Af8=",
            "on": "2024-01-02",
            "tags": ["a"],
        }
    ]
    assert visit().get(EVENTS, params={"key": 2}).json()["rows"][0]["size"] == "Infinity"


def test_lines_and_csv_have_the_rows_of_json(visit: Visitor) -> None:
    query = {"columns": "id,price,what,tags,size", "limit": 4}
    rows = visit().get(EVENTS, params=query).json()["rows"]
    lines = visit().get(EVENTS, params=query, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line) for line in lines.text.splitlines()] == rows
    found = list(
        csv.DictReader(StringIO(visit().get(EVENTS, params=query | {"format": "csv"}).text))
    )
    assert [row["price"] for row in found] == [row["price"] for row in rows]
    assert [row["size"] for row in found[1:]] == ["NaN", "Infinity", ""]
    assert [row["size"] for row in rows[1:]] == ["NaN", "Infinity", None]
    assert lines.headers["Sluice-Version"] == "3"
    assert lines.headers["Sluice-Cursor"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/*", "text/csv"),
        ("application/json;q=0.2, text/csv;q=0.9", "text/csv"),
        ("image/png", None),
        ("text/csv;q=0", None),
    ],
)
def test_the_preferred_format_is_answered(visit: Visitor, accept: str, media: str | None) -> None:
    found = visit().get(EVENTS, headers={"Accept": accept})
    assert found.headers["content-type"].partition(";")[0] == (media or "application/json")
    assert found.status_code == (200 if media else 406)


def test_arrow_says_its_length(visit: Visitor) -> None:
    for query in ({}, {"key": "1"}, {"limit": "0"}, {"order": "none"}):
        found = visit().get(EVENTS, params={"format": "arrow", **query})
        assert int(found.headers["Content-Length"]) == len(found.content)
        assert found.headers.get("Transfer-Encoding") is None


@pytest.mark.parametrize(("format_", "size"), [(Format.ARROW, 400), (Format.JSON, 100)])
def test_a_page_of_text_ends_earlier(here: Reader, format_: Format, size: int) -> None:
    assert Question(here, EVERYTHING, Limits(bytes=400), {}, format_, "events").bytes == size


def test_texts_are_read_as_utf_8(visit: Visitor) -> None:
    address = "/v1/tables/sums/rows?key=2&key="
    encoded = visit().get(f"{address}%C3%A9%26%3D%3F%2F").json()["rows"]
    assert [row["what"] for row in encoded] == ["é&=?/"]


def test_answers_are_described(visit: Visitor, here: Reader) -> None:
    client = visit()
    spec = client.get("/v1/openapi.json").json()
    assert spec["openapi"] == "3.1.0"
    rows = spec["paths"]["/v1/tables/{table}/rows"]["get"]
    assert {"where", "cursor", "as_of"} <= {one["name"] for one in rows["parameters"]}
    assert "/metrics, /healthz and, for people, the pages" in spec["info"]["description"]
    ids = [one["get"]["operationId"] for one in spec["paths"].values()]
    assert len({*ids}) == len(ids)
    assert {"rows", "top", "count", "at", "changes", "metrics", "healthz"} <= {*ids}
    assert {*rows["responses"]["200"]["headers"]} == {"Sluice-Version", "Sluice-Cursor"}
    changes = spec["paths"]["/v1/tables/{table}/changes"]["get"]["parameters"]
    assert ("Last-Event-ID", "header") in {(one["name"], one["in"]) for one in changes}
    error = spec["components"]["schemas"]["Error"]["properties"]
    assert {*error} == {*client.get("/v1/tables/nope").json()["error"]}
    assert {*spec["paths"]["/healthz"]["get"]["responses"]} == {"200", "503"}
    assert client.get("/v1/tables/best/top").headers["Sluice-Version"]
    for path in ("/metrics", "/healthz"):
        media = client.get(path).headers["content-type"].partition(";")[0]
        assert [*spec["paths"][path]["get"]["responses"]["200"]["content"]] == [media]
    page = client.get("/v1/docs")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in page.text
    assert all(path in page.text for path in spec["paths"])


def test_a_row_and_its_explanation_spell_values_alike(
    tmp_path: Path, local_spark: "SparkSession"
) -> None:
    declared = (
        "sources:\n  events:\n"
        '    path: "landing/{interval_start:%Y-%m-%d}/"\n    format: json\n    time: at\n'
        "    schema: >-\n      id INT, at TIMESTAMP, sizes MAP<STRING, DOUBLE>, weight FLOAT,\n"
        "      many ARRAY<DOUBLE>\n"
        "views:\n  kept: {kind: window_store, from: events, key: [id], time: at}\n"
    )
    lake = Landed(tmp_path, declared, local_spark)
    row = b'{"id": 1, "at": "2024-01-01", "sizes": {"a": 0.5, "b": NaN}, "weight": 38.4, '
    lake.land(folder_of(0), a_json=row + b'"many": [Infinity]}')
    lake.deliver()
    lake.advance()
    client = TestClient(server_of(tmp_path).app(), base_url="http://localhost")
    expected = {"sizes": {"a": 0.5, "b": "NaN"}, "weight": 38.4, "many": ["Infinity"]}
    said = client.get("/v1/tables/kept/why?key=1&time=2024-01-01").json()
    shown = [*client.get("/v1/tables/kept/rows").json()["rows"], said["after"]]
    shown += said["from"][0]["rows"]
    assert [{name: one[name] for name in expected} for one in shown] == [expected] * 3
    page = unescape(client.get("/tables/kept?limit=5", headers={"Accept": "text/html"}).text)
    assert '{"a": 0.5, "b": "NaN"}' in page
    assert '["Infinity"]' in page
