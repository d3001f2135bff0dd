"""A lake in a store where commits would not be safe is refused when the configuration is loaded."""

from pathlib import Path

import pytest

from sluice.declare.project import load
from sluice.declare.stores import STORES, faults, store_of, takes_spark
from sluice.errors import ConfigError

AZURE = "abfss://c@a.dfs.core.windows.net"
SOURCE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    {path: "landing/{interval_start:%%Y-%%m-%%d}/", format: json, schema: "item STRING"%s}
"""


def loaded(folder: Path, settings: str, more: str = "", **environ: str):
    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "sluice.yaml").write_text(settings)
    (folder / "pipelines" / "shop.yaml").write_text(SOURCE % more)
    return load(folder, environ=environ)


def mistakes(folder: Path, settings: str, more: str = "", **environ: str) -> str:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, settings, more, **environ)
    return str(refused.value)


@pytest.mark.parametrize(
    ("place", "name"),
    [("s3://b", "S3"), ("s3a://b", "S3"), ("S3://b", "S3"), (AZURE, "Azure")],
)
def test_commits_by_spark_are_refused_with_what_to_write(tmp_path, place, name):
    said = mistakes(tmp_path, f"lake: {place}/lake\nspark:\n  commit: spark\n")
    assert f"sluice.yaml:3: spark.commit: `spark` is not safe on {name}" in said
    assert "write `delta-rs`" in said


@pytest.mark.parametrize("commit", ["auto", "delta-rs"])
@pytest.mark.parametrize("place", ["s3://b", AZURE])
def test_delta_rs_commits_there(tmp_path, commit, place):
    project = loaded(tmp_path, f"lake: {place}/lake\nspark: {{commit: {commit}}}\n")
    assert project.lake == f"{place}/lake"


@pytest.mark.parametrize("name", ["AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER"])
def test_variables_that_would_end_conditional_writes_are_refused(tmp_path, name):
    said = mistakes(tmp_path, "lake: s3://b/lake\n", **{name: "true"})
    assert f"sluice.yaml:1: lake: {name} is set" in said
    assert loaded(tmp_path, "lake: s3://b/lake\n", **{name: "false"})
    assert loaded(tmp_path, "lake: lake\n", **{name: "true"})


def test_a_store_of_which_nothing_is_known_is_refused(tmp_path):
    said = mistakes(tmp_path, "lake: hdfs://node/lake\n")
    assert "nothing is known of commits to hdfs://" in said
    assert "s3://" in said


def test_a_store_where_no_lake_was_tested_is_refused_by_name(tmp_path):
    said = mistakes(tmp_path, "lake: gs://b/lake\n")
    assert "sluice.yaml:1: lake: no lake may lie on Google Cloud Storage yet" in said
    assert "write a path, s3:// or abfss://" in said


@pytest.mark.parametrize("place", ["s3://b", AZURE])
def test_a_delta_table_in_a_store_is_no_source(tmp_path, place):
    more = f"}}\n  clicks: {{path: '{place}/t', format: delta, time: at, schema: 'at TIMESTAMP'"
    said = mistakes(tmp_path, "lake: lake\n", more)
    assert "sources.clicks.path: a Delta table in a store would be read by Spark" in said


def test_a_delta_table_is_followed_by_its_log_not_as_a_stream(tmp_path):
    more = "}\n  clicks: {path: theirs, format: delta, delivery: stream, schema: 'item STRING'"
    said = mistakes(tmp_path, "lake: lake\n", more)
    assert "a Delta table is followed by its log: write `delta: {path: theirs}`" in said


@pytest.mark.parametrize("store", STORES, ids=lambda s: s.name)
def test_each_kind_of_store_has_a_committer_that_excludes_others(store):
    assert "delta-rs" in store.committers
    for scheme in store.schemes:
        uri = f"{scheme}://b/lake" if scheme else "/lake"
        assert store_of(uri) is store
        assert takes_spark(uri) == ("spark" in store.committers)
        assert bool(list(faults(uri, "auto", {}))) == bool(store.lacks)
