"""What changed is delivered by one run of a real Airflow: by its form, and by the page's button."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import Stack

from .corner import DAYS, SALES, await_all, await_run, log_of, sell, states

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CORNER = "corner"


@pytest.fixture(scope="module", autouse=True)
def filled(client: AirflowClient, folder: Path) -> Iterator[None]:
    """Every day was delivered as it first was, and is so again at the end."""
    client.await_dag(CORNER)
    client.unpause(CORNER)
    await_all(client, CORNER, len(DAYS))
    put_back(client, folder)
    yield
    put_back(client, folder)


def put_back(client: AirflowClient, folder: Path) -> None:
    for day in DAYS:
        sell(folder / "landing", day, SALES[day])
    await_run(client, CORNER, client.trigger(CORNER, changed=True))


def items(stack: Stack) -> set[str]:
    return {str(row["item"]) for row in Lake(stack.project).table("corner.sales").read()}


def test_a_run_delivers_the_days_whose_files_have_changed_and_no_others(
    client: AirflowClient, folder: Path, stack: Stack
) -> None:
    for day, number, item in ((DAYS[0], 50, "fig"), (DAYS[2], 51, "kale")):
        sell(folder / "landing", day, [*SALES[day], (number, item, 7, 9)])
    run = client.trigger(CORNER, changed=True, preview=True)
    assert await_run(client, CORNER, run) == "success"
    foreseen = log_of(client, CORNER, run, "ingest.sales")
    assert '"fig"' in foreseen
    assert '"kale"' in foreseen
    assert not {"fig", "kale"} & items(stack)
    run = client.trigger(CORNER, changed=True)
    assert await_run(client, CORNER, run) == "success"
    assert {"fig", "kale"} <= items(stack)
    assert states(client, CORNER, run)["advance.items"] == "success"
    read = [r for r in client.xcom(CORNER, run, "ingest.sales") if "__" in r["table"]]
    assert len(read) == 2, "two of four days"
    run = client.trigger(CORNER, changed=True)
    assert await_run(client, CORNER, run) == "success"
    assert set(states(client, CORNER, run).values()) == {"skipped"}
    told = log_of(client, CORNER, run, "ingest.sales")
    assert "no interval of corner.sales is due, and the files of none have changed" in told


def test_the_button_of_the_page_triggers_that_run_and_leads_to_it(
    client: AirflowClient, folder: Path, stack: Stack, browser: "Browser"
) -> None:
    sell(folder / "landing", DAYS[1], [*SALES[DAYS[1]], (52, "leek", 7, 9)])
    context = browser.new_context(base_url=stack.airflow.url)
    page = context.new_page()
    page.goto("/auth/login")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", stack.airflow.password)
    page.click("button[type=submit]")
    page.wait_for_url(lambda url: "/auth/login" not in url)
    page.goto(f"/dags/{CORNER}/plugin/sluice_pipeline")
    page.frame_locator("iframe").get_by_role("button", name="Deliver what changed").click()
    page.wait_for_url(f"**/dags/{CORNER}/runs/manual__*")
    (run,) = (
        r.id
        for r in client.runs(CORNER, "manual")
        if r.id in page.url.replace("%3A", ":").replace("%2B", "+")
    )
    context.close()
    assert await_run(client, CORNER, run) == "success"
    assert "leek" in items(stack)
