"""Whatever stands where in a file, the answer is a list of mistakes, never a stack trace."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sluice.declare.project import load
from sluice.errors import ConfigError

PIPELINE: dict[str, Any] = {
    "pipeline": "p",
    "schedule": "@daily",
    "start_date": "2017-01-01",
    "sources": {
        "s": {
            "path": "s/{interval_start:%Y}/",
            "schema": "id INT, at TIMESTAMP, op STRING",
            "key": ["id"],
            "change": {"column": "op", "insert": ["c"]},
            "expect": [{"type": "expect_column_to_exist", "column": "id"}],
        }
    },
    "dimensions": {
        "d": {"path": "d/", "schema": "id INT", "key": ["id"]},
        "v": {"join": [{"dimension": "d"}], "select": {"id": "d.id"}},
    },
    "views": {
        "l": {"kind": "lookup", "from": "s", "join": [{"dimension": "d", "on": "id = d.id"}]},
        "c": {
            "kind": "cogroup",
            "key": ["id"],
            "window": {"type": "tumbling", "time": "at", "size": "1 day"},
            "streams": {"x": {"from": "l", "aggregates": {"n": "count(*)"}}},
        },
        "t": {"kind": "topk", "from": "c", "partition_by": ["id"], "order_by": ["n"], "limit": 1},
        "w": {"kind": "window_store", "from": "s", "key": ["id"], "time": "at"},
    },
}
ODD = [None, [], {}, -1, True, "", "x y", "{", "${X}", [[]], {"a": {}}, [None], ["id", "id"]]


def places(node: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in the data but its root."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield (*where, key)
        if isinstance(value, dict | list):
            yield from places(value, (*where, key))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_strange_value_anywhere_is_at_most_a_mistake(
    odd: object, write: Callable[..., Path]
) -> None:
    for where in places(PIPELINE):
        data = deepcopy(PIPELINE)
        node = data
        for key in where[:-1]:
            node = node[key]
        node[where[-1]] = odd
        folder = write({"pipelines/p.yaml": json.dumps(data)})
        assert all("pipelines/p.yaml:1: " in mistake for mistake in mistakes_of(folder))


def mistakes_of(folder: Path) -> tuple[str, ...]:
    """What the loader says; any other exception than its own goes through."""
    try:
        load(folder, environ={})
    except ConfigError as error:
        return error.mistakes
    return ()
