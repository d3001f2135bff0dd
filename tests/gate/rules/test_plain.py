"""What is plain without Great Expectations is right by Great Expectations."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.gate.conftest import SALES

from sluice.declare.table_spec import Expectation
from sluice.gate import engine
from sluice.gate.review import ARGUMENTS, LARGEST, is_plain

ABSENT = object()
VALUES: dict[str, tuple[Any, ...]] = {
    "column": ("a", "a b"),
    "column_list": (["a", "b"], ["a", "b", "c"]),
    "mostly": (0, 1, 0.5, 1.0),
    "min_value": (0, -1, 0.5, -LARGEST, float(LARGEST)),
    "max_value": (0, 1, 0.5, LARGEST, -float(LARGEST)),
    "strict_min": (True, False),
    "strict_max": (True, False),
    "value_set": (["x"], ["x", "1"], [1, 2.5], [0]),
    "regex": ("a", "[a-z", "(?i)x+"),
    "value": (0, -1, LARGEST),
}
ODD = (None, "", "x", True, 2, -1, float("nan"), float("inf"), [], [None], [True], {}, 0.5)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_plain_is_accepted(name: str) -> None:
    needed, more = ARGUMENTS[name]
    given = [VALUES[argument] for argument in needed]
    given += [(ABSENT, *VALUES[argument]) for argument in more]
    every = [
        {n: v for n, v in zip((*needed, *more), values, strict=True) if v is not ABSENT}
        for values in product(*given)
    ]
    plain = [e for e in (Expectation(type=name, kwargs=k) for k in every) if is_plain(e)]
    assert len(plain) > len(every) // 8
    for expectation in plain[:: max(1, len(plain) // 300)]:
        assert engine.mistakes(expectation) == []


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_great_expectations_refuses_is_not_plain(name: str) -> None:
    needed, more = ARGUMENTS[name]
    bound = {"min_value": 0} if "min_value" in more else {}
    right = {argument: VALUES[argument][0] for argument in needed} | bound
    assert is_plain(Expectation(type=name, kwargs=right))
    wrong = [{k: v for k, v in right.items() if k != left_out} for left_out in right]
    wrong += [{**right, argument: v} for argument in (*needed, *more, "colum") for v in ODD]
    found = [Expectation(type=name, kwargs=kwargs) for kwargs in wrong]
    refused = [e for e in found if engine.mistakes(e)]
    assert refused
    assert not any(map(is_plain, refused))


def test_what_is_beyond_every_type_or_unknown_is_not_plain() -> None:
    name = "expect_table_row_count_to_equal"
    assert not is_plain(Expectation(type=name, kwargs={"value": 10**400}))
    assert not is_plain(Expectation(type="expect_no", kwargs={}))


def test_a_project_of_plain_expectations_is_validated_without_it(tmp_path: Path) -> None:
    pipelines = tmp_path / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "shop.yaml").write_text(SALES)
    code = (
        "import sys\nfrom sluice.cli.main import main\n"
        "main(['validate'], standalone_mode=False)\nprint('great_expectations' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "SLUICE_CACHE": str(tmp_path / "cache")},
    )
    assert done.stdout.splitlines()[-1] == "False"
