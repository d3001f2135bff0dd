"""The JSON Schemas accept what the loader accepts, and see what editors should underline."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from sluice.declare.registry import Kind, kinds
from sluice.declare.schema import json_schema

CONFIG = Path(__file__).parents[2] / "config"


def problems(data: Any, of: str) -> list[str]:
    return [problem.message for problem in validator(of).iter_errors(data)]


@cache
def validator(of: str) -> Draft202012Validator:
    schema = json_schema(of)  # type: ignore[arg-type]
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


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


TOPK = {"kind": "topk", "from": "x", "order_by": ["a"], "limit": 1}
STORE = {"kind": "window_store", "from": "x", "key": ["a"], "time": "at"}
ROWS = {"kind": "select", "from": "x", "where": "a > 1"}
OVER = {"kind": "over", "from": "x", "order_by": ["a"], "select": {"b": "lag(a) OVER w"}}
FORMS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    (STORE, ["retention", "90 days", "1 MONTH", " 2  weeks", "${KEPT:-1 day}"],
     ["6 hrs", "90", "0 days", "1.5 days", "", "1 day ago"]),
    (STORE, ["key", ["a"], ["a_1", "b"]], [["A b"], ["_a"], ["9a"], [""], []]),
    (TOPK, ["limit", 3, "3", "most", "${N}"], [0, -1, 2.5, True, "0", "A b", ""]),
    (TOPK, ["order_by", ["a desc"], [1]], [[""], "a", [["a"]]]),
    (ROWS, ["select", {"b": "a + 1"}, ["a", "a + 1 as b"]], [{"B": "a"}, {"_b": "a"}, {"b": " "}]),
    (OVER, ["select", {"b": "lag(a) OVER w"}], [{"B": "lag(a) OVER w"}, {"b": ""}]),
    ({"kind": "sql"}, ["sql", "SELECT a FROM x", {"file": "x.sql"}], ["", 5, {"path": "x.sql"}]),
]  # fmt: skip


@pytest.mark.parametrize(("view", "good", "bad"), FORMS, ids=[form[1][0] for form in FORMS])
def test_a_value_of_a_wrong_form_is_seen(
    view: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    field, *values = good
    data = {"pipeline": "p", "schedule": "assets"}
    seen = {
        str(value): problems({**data, "views": {"v": {**view, field: value}}}, "pipeline") != []
        for value in (*values, *bad)
    }
    assert seen == {**{str(v): False for v in values}, **{str(v): True for v in bad}}


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("pipeline", ["p", "a_1", "${NAME}"], ["P", "_p", "a__b", "a b", ""]),
        ("schedule", ["@daily", "0 6 * * *", "assets"], ["@dailyy", "daily", "* * *", ""]),
        ("start_date", ["2017-01-31", "20170131", "2017-01-31T08:30:00+01:00"],
         ["2017-13-01", "yesterday", "2017/01/01", ""]),
    ],
)  # fmt: skip
def test_a_header_of_a_wrong_form_is_seen(field: str, good: list[str], bad: list[str]) -> None:
    data = {"pipeline": "p", "schedule": "@daily"}
    seen = {value: problems({**data, field: value}, "pipeline") != [] for value in (*good, *bad)}
    assert seen == {**dict.fromkeys(good, False), **dict.fromkeys(bad, True)}


@pytest.mark.parametrize("name", ["V", "_v", "9v", "a__b", "a b", ""])
def test_a_name_that_no_table_can_have_is_seen(name: str) -> None:
    data = {"pipeline": "p", "schedule": "assets", "views": {name: ROWS}}
    assert problems(data, "pipeline") != []


@pytest.mark.parametrize("of", kinds(), ids=lambda of: of.name)
def test_a_field_that_loading_fills_in_is_no_key(of: Kind) -> None:
    shown = json_schema()["$defs"][of.model.__name__]
    assert not of.model.LOADED & {*shown["properties"], *shown["required"]}


def test_variables_may_stand_for_words_and_numbers() -> None:
    data = {"spark": {"engine": "${ENGINE:-submit}", "small_changelog": "${N:-10}"}}
    assert problems(data, "project") == []
