"""An import that can't be done says why and what to do, and writes nothing."""

import json
from pathlib import Path

import pytest
from tests.dbt.warehouse import MANIFEST, NODES, changed, refused

from sluice.dbt import read_artifacts


def test_a_missing_manifest_is_named_with_the_command_that_writes_it(tmp_path: Path) -> None:
    said = refused(tmp_path, str(tmp_path / "manifest.json"))
    assert "can't read" in said
    assert "dbt compile --full-refresh" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a dbt manifest"),
        (
            '{"metadata": {"dbt_schema_version": "https://x/dbt/catalog/v1.json"}}',
            "a different dbt file",
        ),
        (
            '{"metadata": {"dbt_schema_version": "https://x/dbt/manifest/v99.json"}}',
            "a manifest of version v99 that can't be read: its version is unknown",
        ),
    ],
)
def test_a_file_that_is_no_known_manifest_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text)
    assert says in refused(tmp_path, str(file))


def test_a_manifest_with_a_field_that_is_not_known_is_refused_by_its_place(tmp_path: Path) -> None:
    manifest = changed(tmp_path, orders={"invented": 1})
    said = refused(tmp_path, manifest)
    assert "a manifest of version v12 that can't be read" in said
    assert "pip install --upgrade dbt-artifacts-parser" in said


def test_a_project_that_is_only_parsed_is_refused(tmp_path: Path) -> None:
    models = [i.rpartition(".")[2] for i in NODES if i.startswith("model.")]
    manifest = changed(tmp_path, **{name: {"compiled_code": None} for name in models})
    assert "no compiled SQL, as after `dbt parse`" in refused(tmp_path, manifest)


def test_an_adapter_whose_language_is_unknown_is_refused(tmp_path: Path) -> None:
    manifest = Path(changed(tmp_path))
    data = json.loads(manifest.read_text())
    data["metadata"]["adapter_type"] = "abacus"
    manifest.write_text(json.dumps(data))
    assert "the project's adapter is 'abacus', whose SQL can't be read" in refused(
        tmp_path, str(manifest)
    )


def test_models_that_read_each_other_are_named(tmp_path: Path) -> None:
    reads = {"macros": [], "nodes": ["model.bakery.customers"]}
    manifest = changed(tmp_path, stg_bakery__customers={"depends_on": reads})
    assert "depend on each other in a cycle: " in refused(tmp_path, manifest)


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("costumers", "did you mean 'customers'?"),
        ("tag:nothing", "selects no model"),
        ("path:models/nowhere", "selects no model"),
        ("state:modified", "can't be parsed"),
        ("+", "can't be parsed"),
    ],
)
def test_a_selection_of_nothing_is_refused(tmp_path: Path, selector: str, says: str) -> None:
    said = refused(tmp_path, str(MANIFEST), "--select", selector)
    assert says in said
    assert "selectors are name, +name, name+, tag:x and path:x" in said


def test_a_selection_without_a_model_in_sql_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, str(MANIFEST), "--select", "scores")
    assert "no model in SQL among those chosen" in said


def test_a_selection_of_which_nothing_is_understood_is_refused_with_the_reasons(
    tmp_path: Path,
) -> None:
    said = refused(tmp_path, str(MANIFEST), "--select", "fresh_orders")
    assert "none of these models can be a view, so nothing was written" in said
    assert "fresh_orders: 'CURRENT_DATE'" in said


def test_a_name_that_no_pipeline_may_have_is_refused(tmp_path: Path) -> None:
    assert "is not a name" in refused(tmp_path, str(MANIFEST), "--pipeline", "A b")


def test_an_older_manifest_without_the_projects_name_has_that_of_its_models(tmp_path: Path) -> None:
    manifest = Path(changed(tmp_path))
    data = json.loads(manifest.read_text())
    del data["metadata"]["project_name"]
    manifest.write_text(json.dumps(data))
    assert read_artifacts(manifest, None).name == "bakery"
