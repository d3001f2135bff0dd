"""The lake of a configuration, as users open it."""

import subprocess
import sys

import pyarrow as pa
import pytest
from tests.kinds.topk.tables import LEADERS, ranked
from tests.read.tables import project_at, write_table

import sluice
from sluice.declare.table import UnknownTable
from sluice.errors import ConfigError, UsageError


@pytest.fixture
def config(tmp_path):
    project = project_at(tmp_path)
    write_table(project, "totals", ranked(LEADERS, rank=False))
    write_table(project, "sales__quarantine", pa.table({"reason": ["key is null"]}))
    return tmp_path / "config"


def test_a_configuration_is_opened_and_read(config):
    lake = sluice.open(config)
    assert lake.table("totals").get("MEAT", 3)["product_id"] == 3
    assert lake.table("shop.totals").version == 0


def test_a_sources_quarantine_is_a_table_too(config):
    assert list(sluice.open(config).table("sales__quarantine").all()) == [{"reason": "key is null"}]


def test_importing_sluice_imports_nothing_heavy():
    code = "import sluice, sys; print([m for m in ('pyarrow', 'deltalake') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda lake: lake.table("totls"), UnknownTable, "did you mean"),
        (lambda lake: lake.table("leaders"), UsageError, "run `sluice run shop`"),
        (lambda lake: lake.table("products"), UsageError, "run `sluice load products`"),
        (lambda lake: lake.window("totals"), UsageError, "fetch reads tables of kind window_store"),
        (lambda lake: lake.top("totals"), UsageError, "top reads tables of kind topk"),
        (lambda lake: lake.table("totals", version=5), UsageError, "the newest version is 0"),
        (lambda lake: lake.table("totals", version=10**17), UsageError, "there is none yet"),
        (lambda lake: lake.table("totals", version=-1), UsageError, "-1 is not a version"),
        (lambda lake: lake.table("totals", version="1"), UsageError, "'1' is not a version"),
        (lambda lake: lake.why_not("totals"), UsageError, "no row of 'totals' is named"),
        (lambda lake: lake.why("totals"), UsageError, "give"),
    ],
)
def test_what_can_not_be_opened_says_what_to_do(config, ask, error, message):
    with pytest.raises(error) as caught:
        ask(sluice.open(config))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("delivery", "command"),
    [
        ("path: 'sales/{interval_start:%Y-%m-%d}/'", "sluice ingest sales --start T --end T"),
        ("path: sales/, delivery: stream", "sluice ingest sales"),
    ],
)
def test_a_source_without_rows_names_the_command_that_delivers(tmp_path, delivery, command):
    declared = f"sales: {{{delivery}, format: json, schema: id INT}}"
    head = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'
    project_at(tmp_path, f"{head}sources:\n  {declared}\n")
    with pytest.raises(UsageError, match=f"run `{command}` or `sluice run shop`"):
        sluice.open(tmp_path / "config").table("sales")


def test_a_folder_without_configuration_is_a_mistake_of_configuration(tmp_path):
    with pytest.raises(ConfigError):
        sluice.open(tmp_path / "nowhere")
