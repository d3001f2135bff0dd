"""The JSON Schemas accept what the loader accepts, and see what editors should underline."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from sluice.declare.registry import Kind, kinds
from sluice.declare.schema import json_schema

CONFIG = Path(__file__).parents[2] / "config"


def problems(data: Any, of: str) -> list[str]:
    schema = json_schema(of)  # type: ignore[arg-type]
    Draft202012Validator.check_schema(schema)
    return [problem.message for problem in Draft202012Validator(schema).iter_errors(data)]


def written(path: Path) -> Any:
    return json.loads(json.dumps(YAML(typ="safe").load(path), default=str))


@pytest.mark.parametrize("path", sorted((CONFIG / "pipelines").glob("*.yaml")), ids=str)
def test_our_pipelines_fit_their_schema(path: Path) -> None:
    assert problems(written(path), "pipeline") == []


def test_our_project_fits_its_schema() -> None:
    assert problems(written(CONFIG / "sluice.yaml"), "project") == []


@pytest.mark.parametrize(
    "view",
    [
        {"kind": "topk", "from": "x", "order_by": ["a"], "limit": 1, "lmit": 2},
        {"kind": "cogroup", "key": ["a"]},
        {"kind": "lookup", "from": "x", "join": [{"dimension": "d", "type": "outer"}]},
        {"kind": "nothing"},
    ],
)
def test_a_wrong_view_is_seen(view: dict[str, Any]) -> None:
    data = {"pipeline": "p", "schedule": "assets", "views": {"v": view}}
    assert problems(data, "pipeline") != []


@pytest.mark.parametrize("of", kinds(), ids=lambda of: of.name)
def test_a_field_that_loading_fills_in_is_no_key(of: Kind) -> None:
    shown = json_schema()["$defs"][of.model.__name__]
    assert not of.model.LOADED & {*shown["properties"], *shown["required"]}


def test_variables_may_stand_for_words_and_numbers() -> None:
    data = {"spark": {"engine": "${ENGINE:-submit}", "small_changelog": "${N:-10}"}}
    assert problems(data, "project") == []
