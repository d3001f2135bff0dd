"""What no answer shows: values of variables, and where delivered files lie on this machine."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import server_of
from tests.support.landed import Landed, folder_of

from sluice.declare.document import hide_values
from sluice.delta.failures import Failure, keep
from sluice.delta.places.lake_layout import layout
from sluice.gate import engine
from sluice.report.publish import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
description: Orders that ${WHO} keeps.
sources:
  orders:
    description: Delivered by ${WHO}.
    path: "${LANDED}/orders/{interval_start:%Y-%m-%d}/"
    format: csv
    options: {header: "true"}
    schema: id INT, state STRING
    key: [id]
    expect:
      - {type: expect_column_values_to_be_in_set, column: state, on_failure: quarantine,
         value_set: ["${STATE}", "${WHO}", paid]}
      - {type: expect_column_values_to_not_be_in_set, column: state, value_set: ["${STATE}"],
         on_failure: warn}
dimensions:
  people:
    format: jdbc
    options: {url: "${DATABASE}", query: "SELECT id, state FROM people WHERE state = '${STATE}'"}
    schema: id INT, state STRING
    key: [id]
views:
  open: {kind: select, from: orders, where: "state = '${STATE}'", select: {id: id}}
"""
WHO, STATE = "Ann O'Neil-1", "hush-hush"
VALUES = {"WHO": WHO, "STATE": STATE, "DATABASE": "jdbc:postgresql://hush-hush.example/x"}
FILES = [f"{folder_of(nth)}/a.csv" for nth in range(2)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, local_spark: "SparkSession") -> Iterator[Landed]:
    """Two days of orders, one of each in quarantine; a failure; and the report."""
    folder = tmp_path_factory.mktemp("hidden")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VALUES.items():
            patch.setenv(name, value)
        patch.setenv("LANDED", f"{folder}/landing")
        lake = Landed(folder, DECLARED, local_spark)
        for nth in range(2):
            rows = f"id,state\n{nth},paid\n{nth + 5},{STATE}\n9,sold\n"
            lake.land(f"orders/{folder_of(nth)}", a_csv=rows)
            lake.deliver(nth, "orders")
        lake.advance()
        said = f"{STATE} was not read from {folder}/landing/orders/x.csv"
        keep(layout(lake.project), Failure("shop.open", datetime.now(UTC), said, said))
        publish(lake.project)
        yield lake


@pytest.fixture(scope="module")
def client(lake: Landed) -> TestClient:
    return TestClient(server_of(lake.folder).app(), base_url="http://localhost")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/plan",
        "/tables/orders",
        "/tables/open",
        "/tables/people",
        "/tables/open/why?key=5",
        "/report/index.html",
        "/report/shop.orders.html",
        "/report/shop.open.html",
        "/v1/tables",
        "/v1/tables/open",
        "/v1/tables/orders",
        "/v1/status",
        "/v1/plan",
        "/v1/tables/open/why?key=5",
        "/v1/tables/open/why-not?key=1",
        "/v1/tables/orders/why-not?key=9",
        "/v1/tables/orders__quarantine/rows?columns=reason,file",
        "/v1/tables/orders__quarantine/rows?format=csv",
        "/v1/tables/orders__quarantine/changes?from_version=1",
        "/tables/orders__quarantine?limit=5",
        "/metrics",
    ],
)
def test_answers_name_variables_and_no_folder(lake: Landed, client: TestClient, path: str) -> None:
    found = client.get(path, headers={"Accept": "*/*" if "v1" in path else "text/html, */*"})
    assert found.status_code == 200, found.text
    text = unescape(found.text).replace("\\\\", "\\")
    assert "Neil" not in text
    assert str(lake.folder) not in text
    rows = text.count(f'"state": "{STATE}"') + text.count(f">{STATE}<")  # those are values of rows
    assert text.count(STATE) == rows, text


def test_what_is_hidden_is_still_named(client: TestClient) -> None:
    assert client.get("/v1/tables/orders").json()["description"] == "Delivered by ${WHO}."
    assert "Orders that ${WHO} keeps." in client.get("/").text
    assert "Delivered by ${WHO}." in client.get("/report/shop.orders.html").text
    assert "WHERE state = '${STATE}'" in unescape(client.get("/tables/people").text)
    (failed,) = [t for t in client.get("/v1/status").json()["tables"] if t["failure"]]
    assert failed["failure"]["reason"] == "${STATE} was not read from x.csv"
    (kept_out,) = [
        one
        for one in client.get("/v1/tables/open/why-not?key=1").json()["reasons"]
        if one["why"] == "filtered"
    ]
    assert "${STATE}" in kept_out["what"]


def test_files_in_quarantine_are_named_below_the_landing_place(client: TestClient) -> None:
    address = "/v1/tables/orders__quarantine"
    rows = client.get(f"{address}/rows").json()["rows"]
    assert sorted(row["file"] for row in rows) == FILES
    assert all("${STATE}" in row["reason"] for row in rows)
    arrow = client.get(f"{address}/rows?columns=file&format=arrow").content
    assert sorted(pa.ipc.open_stream(BytesIO(arrow)).read_all()["file"].to_pylist()) == FILES
    changes = client.get(f"{address}/changes?from_version=1").json()["rows"]
    assert [row["file"] for row in changes] == FILES[1:]
    (reason,) = client.get("/v1/tables/orders/why-not?key=9").json()["reasons"]
    assert sorted(row["file"] for row in reason["rows"]) == FILES
    why = client.get("/v1/tables/open/why?key=6").json()
    assert [d["files"] for one in why["from"] for d in one["deliveries"]] == [[FILES[1]]]


def test_data_docs_name_variables(lake: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    file = engine.file_of("shop.orders")
    monkeypatch.setattr(engine, "pages", lambda _: {file: f"<p>one of {STATE}</p>"})
    quality = lake.project.quality.model_copy(update={"data_docs": True})
    index = publish(lake.project.model_copy(update={"quality": quality}))
    assert (index.parent / file).read_text() == "<p>one of ${STATE}</p>"


@pytest.mark.parametrize("where", ["file like '%hidden%'", "NOT (batch = 1 OR Reason = 'x')"])
def test_what_is_hidden_is_not_found_by_conditions(client: TestClient, where: str) -> None:
    address = "/v1/tables/orders__quarantine/rows"
    found = client.get(address, params={"where": where})
    assert found.status_code == 400
    assert "a condition can't test" in found.json()["error"]["message"]
    assert len(client.get(address, params={"where": "batch = 1"}).json()["rows"]) == 1


def test_a_refusal_says_back_what_was_asked(lake: Landed, client: TestClient) -> None:
    found = client.get("/v1/tables/open/rows", params={"where": f"idd = '{STATE}'"})
    assert found.status_code == 400
    assert "${" not in found.json()["error"]["message"]
    other = client.get("/v1/tables/orders/rows", params={"where": "state = 1 and idd = 2"}).text
    assert str(lake.folder) not in other


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("a-longer-b", {"A": "longer", "B": "longer-b"}, "a-${B}"),
        ("it is 2000, not 12000", {"A": "2000"}, "it is ${A}, not 12000"),
        ("too sho", {"A": "sho"}, "too sho"),
        ("LONG of A_LONG_ONE", {"A_LONG_ONE": "LONG"}, "${A_LONG_ONE} of A_${A_LONG_ONE}_ONE"),
        (r"x = 'it\'s it' or 'it''s it'", {"A": "it's it"}, "x = '${A}' or '${A}'"),
        ("nothing", {}, "nothing"),
    ],
)
def test_values_are_replaced_in_messages(text: str, values: dict[str, str], shown: str) -> None:
    assert hide_values(text, values) == shown
    assert hide_values(text, values, given=text) == text
