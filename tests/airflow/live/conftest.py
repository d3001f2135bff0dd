"""One Airflow for all tests of this folder: it is stopped when the last of them has ended."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.java import LEAN

from airflow_client import AirflowClient
from sluice.read.lake import Lake
from stack import ROOT, Ports, Stack

from .corner import CALM, CORNER, DAYS, NEWS, SALES, sell, webhook
from .etl import write as write_etl
from .shelf import DIGEST, SHELF
from .theirs import CRM, HEARD
from .till import TILL
from .zombies import DUEL, STOPS

PIPELINES = {
    "corner": CORNER,
    "news": NEWS,
    "shelf": SHELF,
    "digest": DIGEST,
    "duel": DUEL,
    "till": TILL,
    "heard": HEARD,
    "crm": CRM,
}


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of its own: retail, and small pipelines that these tests are about."""
    folder = tmp_path_factory.mktemp("live")
    for name in ("config", "dags", "jobs"):
        shutil.copytree(ROOT / name, folder / name)
    for name, text in PIPELINES.items():
        (folder / f"config/pipelines/{name}.yaml").write_text(text, "utf-8")
    write_etl(folder)
    for day in DAYS:
        sell(folder / "landing", day, SALES[day])
    return folder


@pytest.fixture(scope="package")
def alerts() -> Iterator[list[dict[str, Any]]]:
    """What a chat service received; its address is in the environment of the stack."""
    heard: list[dict[str, Any]] = []
    with webhook(heard) as address:
        os.environ["SLUICE_WEBHOOK"] = address
        yield heard
        del os.environ["SLUICE_WEBHOOK"]


@pytest.fixture(scope="package")
def stack(folder: Path, alerts: list[dict[str, Any]]) -> Iterator[Stack]:
    """Airflow with a Spark Connect server, started once."""
    places = {"SLUICE_LAKE": folder / "lake", "SLUICE_LANDING": folder / "landing"}
    variables = {name: str(place) for name, place in places.items()} | STOPS | LEAN | CALM
    stack = Stack(folder / "airflow", "connect", Ports.free(), root=folder, variables=variables)
    with stack.running():
        yield stack


@pytest.fixture(scope="package")
def client(stack: Stack) -> AirflowClient:
    """Its REST API."""
    return stack.airflow.client()


@pytest.fixture
def lake(stack: Stack) -> Lake:
    """What its runs have made."""
    return Lake(stack.project)
