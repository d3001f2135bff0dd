"""A task names itself as the parent of lineage events, where any are sent."""

import os

import pytest
from tests.support.tasks import context

from sluice.airflow.tasks import PARENT, name_parent
from sluice.language.interval import Interval

DAY = Interval.parse("2024-01-01", "2024-01-02", "UTC")


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(PARENT, "")
    monkeypatch.delenv(PARENT)


def test_without_settings_nothing_is_named() -> None:
    name_parent({})
    assert PARENT not in os.environ


def test_each_try_of_a_task_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    run, names = context(DAY), []
    for number in (1, 1, 2):
        run["ti"].try_number = number
        name_parent(run)
        names.append(os.environ[PARENT])
    assert names[0].startswith("prod/shop.t/")
    assert names[0] == names[1] != names[2]
