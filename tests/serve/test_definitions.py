"""Definitions of views, as a server shows them: in the words of whoever declared them."""

import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from starlette.testclient import TestClient
from tests.serve.conftest import server_of

from sluice.declare.project import load

RETAIL = Path(__file__).parents[2] / "config"
MORE = """\

  tied:
    kind: topk
    from: product_sales
    partition_by: [upper(department) as area, {half: "product_id % 2"}]
    order_by: [units, sales desc nulls first]
    limit: 3
  matches:
    kind: join
    left: {table: households, as: h}
    right: {table: demographics, as: d}
    on: [household_id, CAST(h.baskets AS STRING) = d.household_size]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's configuration with two more views, of a lake where nothing is built."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(RETAIL, folder / "config")
    with (folder / "config" / "pipelines" / "retail.yaml").open("a", encoding="utf-8") as file:
        file.write(MORE)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> TestClient:
    return TestClient(server_of(folder).app(), base_url="http://localhost")


def declared(folder: Path) -> dict[str, dict[str, Any]]:
    """Views as the file has them, without what a server shows beside a definition."""
    text = (folder / "config" / "pipelines" / "retail.yaml").read_text("utf-8")
    apart = {"kind", "description", "expect"}
    views = YAML(typ="safe", pure=True).load(text)["views"]
    return {n: {k: v for k, v in view.items() if k not in apart} for n, view in views.items()}


@pytest.mark.parametrize(
    "view",
    ["busy_departments", "invoices", "top_products_weekly", "baskets", "basket_steps", "matches"],
)
def test_a_definition_is_the_text_of_its_user(folder: Path, client: TestClient, view: str) -> None:
    answer = client.get(f"/v1/tables/{view}").json()
    assert answer["definition"] == declared(folder)[view]


def test_every_definition_declares_the_same_view(folder: Path, client: TestClient) -> None:
    project = load(folder / "config")
    for name, view in project.pipelines["retail"].views.items():
        written = client.get(f"/v1/tables/{name}").json()["definition"]
        given = {**written, "name": name, "pipeline": "retail", "expect": view.expectations}
        assert type(view).model_validate(given | {"description": view.description}) == view


def test_a_tables_page_has_its_query_as_written(folder: Path, client: TestClient) -> None:
    page = unescape(client.get("/tables/busy_departments").text)
    shown = page[page.index('class="code"') :]
    shown = shown[shown.index(">") + 1 : shown.index("</span>")]
    whole = YAML(typ="safe", pure=True).load(shown)
    assert whole == {"kind": "sql", **declared(folder)["busy_departments"]}
    assert 'class="code"' not in client.get("/tables/products").text


def test_values_of_the_environment_are_shown_by_their_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "s3cret-1 o'clock")
    monkeypatch.setenv("MOST", "37")
    shutil.copytree(folder / "config", tmp_path / "config")
    with (tmp_path / "config" / "pipelines" / "retail.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "  masked:\n    kind: topk\n    from: product_sales\n    partition_by: [department]\n"
            """    order_by: ['department = "x-${SOME_TOKEN}" desc', units]\n    limit: ${MOST}\n"""
        )
    client = TestClient(server_of(tmp_path).app(), base_url="http://localhost")
    definition = client.get("/v1/tables/masked").json()["definition"]
    assert definition["limit"] == "${MOST}"
    assert "${SOME_TOKEN}" in str(definition["order_by"])
    for path in (
        "/v1/tables/masked",
        "/v1/tables",
        "/tables/masked",
        "/",
        "/v1/status",
        "/v1/plan",
    ):
        assert "s3cret" not in client.get(path).text
    assert '"37"' not in str(client.get("/v1/tables/baskets").json())


def test_what_is_delivered_has_a_definition_without_places_and_options(client: TestClient) -> None:
    found = client.get("/v1/tables/coupon_redemptions").json()
    schema = {one["name"]: one["type"] for one in found["definition"].pop("schema")}
    assert schema == {
        "household_id": "BIGINT",
        "coupon_upc": "BIGINT",
        "campaign_id": "INT",
        "redemption_date": "DATE",
    }
    assert found["definition"] == {"format": "csv", "time": "redemption_date"}
    first = {"says": "column values to not be null (household_id)", "on_failure": "quarantine"}
    assert found["expectations"][0] == first
    for name in ("transactions", "coupon_redemptions", "campaign_memberships", "products"):
        text = client.get(f"/v1/tables/{name}").text
        assert [word for word in ("landing", "header", "interval_start") if word in text] == []
    assert client.get("/v1/tables/products").json()["definition"]["key"] == ["product_id"]
