"""Another writer's Delta table in a bucket: a source, or a dimension, of a lake in one."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from tests.support.stores import Store

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.delta.places.delta_rs import options
from sluice.errors import UsageError
from sluice.read.lake import Lake
from sluice.starter.new_project import start

CRM = """\
pipeline: crm
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders:
    delta: {path: "s3://%s/orders"}
    schema: id BIGINT, part STRING, paid BIGINT
    key: [id]
dimensions:
  known:
    path: "s3://%s/orders"
    format: delta
    schema: id BIGINT, paid BIGINT
    key: [id]
"""


def test_a_table_in_a_bucket_is_followed(store: Store, tmp_path: Path) -> None:
    bucket = store.place()
    theirs, settings = f"s3://{bucket}/orders", options(f"s3://{bucket}/orders")
    (tmp_path / "config/pipelines").mkdir(parents=True)
    (tmp_path / "config/sluice.yaml").write_text(f"lake: s3://{store.place()}/lake\n")
    (tmp_path / "config/pipelines/crm.yaml").write_text(CRM % (bucket, bucket))
    rows = pa.table({"id": [1, 2], "part": ["a b", "c/d"], "paid": [1, 2]})
    write_deltalake(theirs, rows, partition_by=["part"], storage_options=settings)
    begun = tmp_path / "begun"
    begun.mkdir()
    start(begun, [f"{theirs}/"], "{}")
    text = (begun / "config/pipelines/begun.yaml").read_text()
    assert f'orders:\n    delta: {{path: "{theirs}"}}\n    schema: "id BIGINT, ' in text
    with pytest.raises(UsageError, match="there is no Delta table at s3"):
        start(tmp_path / "none", [f"s3://{bucket}/none"], "{}")
    for ids in ({1, 2}, {2}):
        done = CliRunner().invoke(main, ["run", "crm", "--config", str(tmp_path / "config")])
        assert done.exit_code == 0, done.output
        lake = Lake(load(tmp_path / "config"))
        for table in ("orders", "known"):
            assert {row["id"] for row in lake.table(table).read()} == ids
        DeltaTable(theirs, storage_options=settings).delete("id = 1")
    missing = (tmp_path / "config/pipelines/crm.yaml").read_text().replace("/orders", "/none")
    (tmp_path / "config/pipelines/crm.yaml").write_text(missing)
    for words, what in (
        (("ingest", "orders"), "there is no Delta table"),
        (("load", "known"), "there are no files"),
    ):
        done = CliRunner().invoke(main, [*words, "--config", str(tmp_path / "config")])
        assert (done.exit_code, what in done.output) == (2, True), done.output
