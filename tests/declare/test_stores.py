"""A lake in a store where commits would not be safe is refused when the configuration is loaded."""

from pathlib import Path

import pytest

from sluice.declare.project import load
from sluice.declare.stores import STORES, faults, store_of
from sluice.errors import ConfigError

NO_SPARK = pytest.mark.parametrize(
    ("name", "place"),
    [("Azure", "abfss://c@a.dfs.core.windows.net"), ("Google Cloud Storage", "gs://b")],
)
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


@NO_SPARK
def test_commits_by_spark_are_refused_with_what_to_write(tmp_path, name, place):
    said = mistakes(tmp_path, f"lake: {place}/lake\nspark:\n  commit: spark\n")
    assert f"sluice.yaml:3: spark.commit: `spark` is not safe on {name}" in said
    assert "write `delta-rs`" in said


@NO_SPARK
@pytest.mark.parametrize("commit", ["auto", "delta-rs"])
def test_delta_rs_commits_there_and_spark_gets_nothing(tmp_path, name, place, commit):
    project = loaded(tmp_path, f"lake: {place}/lake\nspark: {{commit: {commit}}}\n")
    assert project.lake == f"{place}/lake"
    assert store_of(project.lake).name == name
    assert project.spark.drivers == ()


@pytest.mark.parametrize("commit", ["auto", "delta-rs", "spark"])
@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3"])
def test_either_commits_on_s3_and_spark_gets_what_it_takes(tmp_path, scheme, commit):
    project = loaded(tmp_path, f"lake: {scheme}://b/lake\nspark: {{commit: {commit}}}\n")
    assert project.lake == f"{scheme}://b/lake"
    assert project.spark.drivers == ("s3",)


def test_spark_gets_it_only_for_places_on_s3(tmp_path):
    assert loaded(tmp_path, "lake: lake\n").spark.drivers == ()
    known = "{path: 's3://b/t', format: delta, schema: 'item STRING', key: [item]}"
    landed = "{path: 's3a://b/l', format: json, schema: 'item STRING', delivery: stream}"
    followed = "{delta: {path: 's3://b/t'}, schema: 'item STRING', key: [item]}"
    for more in (
        f"}}\ndimensions:\n  known: {known[:-1]}",
        f"}}\n  clicks: {landed[:-1]}",
        f"}}\n  clicks: {followed[:-1]}",
    ):
        assert loaded(tmp_path, "lake: lake\n", more).spark.drivers == ("s3",)


@pytest.mark.parametrize("name", ["AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER"])
def test_variables_that_would_end_conditional_writes_are_refused(tmp_path, name):
    said = mistakes(tmp_path, "lake: s3://b/lake\n", **{name: "true"})
    assert f"sluice.yaml:1: lake: {name} is set" in said
    assert loaded(tmp_path, "lake: s3://b/lake\n", **{name: "false"})
    assert loaded(tmp_path, "lake: lake\n", **{name: "true"})


def test_a_store_of_which_nothing_is_known_is_refused(tmp_path):
    said = mistakes(tmp_path, "lake: hdfs://node/lake\n")
    assert "commits to hdfs:// are not supported" in said
    assert "s3://, s3a://, abfs://, abfss://, gs://" in said


@pytest.mark.parametrize("lake", ["s3://", "gs:///lake", "s3://b/x//lake", "s3://b/../lake"])
def test_a_place_that_no_client_finds_is_refused(tmp_path, lake):
    said = mistakes(tmp_path, f"lake: {lake}\n")
    assert f"sluice.yaml:1: lake: {lake}: " in said
    landed = f"}}\n  clicks: {{path: '{lake}/', format: json, schema: 'item STRING'"
    said = mistakes(tmp_path, "lake: lake\n", f"{landed}, delivery: stream")
    assert f"sources.clicks.path: {lake}/: " in said


@pytest.mark.parametrize("place", ["c", "c@", "@a.dfs.core.windows.net"])
def test_a_container_without_its_account_is_refused(tmp_path, place):
    said = mistakes(tmp_path, f"lake: abfss://{place}/lake\n")
    assert "no account is named; write abfss://container@account.dfs.core" in said


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b", r"a\b"])
@pytest.mark.parametrize("store", ["s3://b", "abfss://c@a.dfs.core.windows.net", "gs://b"])
def test_a_name_that_delta_rs_reads_as_another_is_refused(tmp_path, store, name):
    said = mistakes(tmp_path, f"lake: '{store}/{name}/lake'\n")
    assert "would point to another place; use a name without it" in said
    followed = f"}}\n  clicks: {{delta: {{path: '{store}/{name}'}}, schema: 'item STRING'"
    assert "would point to another place" in mistakes(tmp_path, "lake: lake\n", followed)
    landed = f"}}\n  clicks: {{path: '{store}/{name}/', format: json, schema: 'item STRING'"
    assert loaded(tmp_path, "lake: lake\n", f"{landed}, delivery: stream")


@pytest.mark.parametrize("name", ["50% ü & co", "a=b,c+d", "(日本)/.x", "a..b"])
def test_other_names_are_not(tmp_path, name):
    assert loaded(tmp_path, f"lake: 's3://b/{name}/lake/'\n")


@pytest.mark.parametrize(
    "name", ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY"]
)
def test_credentials_that_only_delta_rs_reads_are_refused(tmp_path, name):
    said = mistakes(tmp_path, "lake: gs://b/lake\n", **{name: "key.json"})
    assert f"sluice.yaml:1: lake: {name} is set" in said
    assert "set GOOGLE_APPLICATION_CREDENTIALS instead" in said
    loaded(tmp_path, "lake: s3://b/lake\n", **{name: "key.json"})
    loaded(tmp_path, "lake: gs://b/lake\n", GOOGLE_APPLICATION_CREDENTIALS="key.json")


@NO_SPARK
def test_a_delta_table_without_sparks_access_is_no_source(tmp_path, name, place):
    more = f"}}\n  clicks: {{path: '{place}/t', format: delta, time: at, schema: 'at TIMESTAMP'"
    said = mistakes(tmp_path, "lake: lake\n", more)
    assert f"sources.clicks.path: a Delta table on {name} would be read by Spark" in said


@NO_SPARK
def test_a_delta_table_with_options_without_sparks_access_is_no_dimension(tmp_path, name, place):
    more = "}\ndimensions:\n  items: {path: '%s/t', format: delta, key: [id], schema: 'id INT'%s"
    loaded(tmp_path, "lake: lake\n", more % (place, ""))
    said = mistakes(tmp_path, "lake: lake\n", more % (place, ", options: {versionAsOf: '1'}"))
    assert f"dimensions.items.path: a Delta table on {name} would be read by Spark, because" in said


def test_a_delta_table_is_followed_by_its_log_not_as_a_stream(tmp_path):
    more = "}\n  clicks: {path: theirs, format: delta, delivery: stream, schema: 'item STRING'"
    said = mistakes(tmp_path, "lake: lake\n", more)
    assert "a Delta table is followed by its log: write `delta: {path: theirs}`" in said


@pytest.mark.parametrize("store", STORES, ids=lambda s: s.name)
def test_each_kind_of_store_has_an_operation_that_excludes_others(store):
    assert store.exclusive
    for scheme in store.schemes:
        bucket = "c@a.dfs.core.windows.net" if scheme.startswith("abfs") else "b"
        uri = f"{scheme}://{bucket}/lake" if scheme else "/lake"
        assert store_of(uri) is store
        assert list(faults(uri, "auto", {})) == []


PROFILE = "[profile lake]\nrole_arn = arn:aws:iam::1:role/lake\n"


@pytest.mark.parametrize("more", ["source_profile = base\n", "credential_source = Ec2\n"])
def test_a_profile_that_names_a_role_is_refused_with_what_to_set(tmp_path, more):
    config = tmp_path / "config"
    config.write_text(PROFILE + more)
    environ = {"AWS_PROFILE": "lake", "AWS_CONFIG_FILE": str(config)}
    said = mistakes(tmp_path, "lake: s3://b/lake\n", **environ)
    assert "sluice.yaml:1: lake: the profile 'lake' names a role by `role_arn`" in said
    assert "set AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE" in said


def test_other_profiles_and_keys_are_not(tmp_path):
    config = tmp_path / "config"
    config.write_text(f"{PROFILE}source_profile = base\n[profile base]\nregion = us-east-1\n")
    profile = {"AWS_PROFILE": "lake", "AWS_CONFIG_FILE": str(config)}
    for other in ({"AWS_PROFILE": "base"}, {"AWS_ACCESS_KEY_ID": "k"}):
        loaded(tmp_path, "lake: s3://b/lake\n", **{**profile, **other})
    loaded(tmp_path, "lake: lake\n", **profile)
    loaded(tmp_path, "lake: s3://b/lake\nlake_connection: keys\n", **profile)
    config.write_text(f"{PROFILE}web_identity_token_file = /token\n")
    loaded(tmp_path, "lake: s3://b/lake\n", **profile)


@pytest.mark.parametrize(("name", "part"), [("a#4", "#"), ("q?x", "?"), ("b%20c", "%20")])
def test_a_lake_whose_path_is_no_url_is_refused(tmp_path, name, part):
    said = mistakes(tmp_path, f"lake: '{tmp_path}/{name}/lake'\n")
    assert f"lake: {tmp_path}/{name}/lake has '{part}' in its path" in said
    assert loaded(tmp_path, f"lake: '{tmp_path}/b%c d/lake'\n").lake.endswith("/b%c d/lake")
