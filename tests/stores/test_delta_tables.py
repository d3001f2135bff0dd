"""A Delta table of others in a bucket, followed by a lake that may lie in one, too."""

from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from tests.support.stores import Store

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.delta.places.stores import options
from sluice.read.lake import Lake

CRM = """\
pipeline: crm
schedule: "@daily"
start_date: 2024-01-01
sources:
  orders:
    delta: {path: "s3://%s/orders"}
    schema: id BIGINT, part STRING, paid BIGINT
    key: [id]
"""


def test_a_table_in_a_bucket_is_followed(store: Store, tmp_path: Path) -> None:
    bucket = store.place()
    theirs, settings = f"s3://{bucket}/orders", options(f"s3://{bucket}/orders")
    (tmp_path / "config/pipelines").mkdir(parents=True)
    (tmp_path / "config/sluice.yaml").write_text(f"lake: s3://{store.place()}/lake\n")
    (tmp_path / "config/pipelines/crm.yaml").write_text(CRM % bucket)
    rows = pa.table({"id": [1, 2], "part": ["a b", "c/d"], "paid": [1, 2]})
    write_deltalake(theirs, rows, partition_by=["part"], storage_options=settings)
    for ids in ({1, 2}, {2}):
        done = CliRunner().invoke(main, ["run", "crm", "--config", str(tmp_path / "config")])
        assert done.exit_code == 0, done.output
        found = Lake(load(tmp_path / "config")).table("orders").read()
        assert {row["id"] for row in found} == ids
        DeltaTable(theirs, storage_options=settings).delete("id = 1")
    missing = (tmp_path / "config/pipelines/crm.yaml").read_text().replace("/orders", "/none")
    (tmp_path / "config/pipelines/crm.yaml").write_text(missing)
    done = CliRunner().invoke(main, ["ingest", "orders", "--config", str(tmp_path / "config")])
    assert (done.exit_code, "there is no Delta table" in done.output) == (2, True), done.output
