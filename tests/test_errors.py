"""The tree of errors is complete, and so are its exit codes."""

import ast
from pathlib import Path

import sluice.errors
from sluice.errors import ConfigError, ExitCode, QualityStop, Retryable, SeveralFailed

ROOT = Path(__file__).parents[1]


def test_the_docstring_draws_every_error_of_the_package() -> None:
    classes = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for path in (ROOT / "libs" / "sluice").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    tree = {"SluiceError"}
    while grown := {name for name, bases in classes.items() if tree & set(bases)} - tree:
        tree |= grown
    assert {name for name in tree if name not in (sluice.errors.__doc__ or "")} == set()
    assert {"LostRace", "IntervalError", "UnknownTable"} < tree


def test_of_several_failures_the_worst_comes_first_and_gives_the_exit_code() -> None:
    errors = {
        "shop.a": Retryable("no route to the store"),
        "shop.b": QualityStop("shop.b: a text", hint="mend it"),
        "shop.c": Retryable("no route to the store"),
        "shop.d": ConfigError(["shop.d: another definition"], hint="rebuild it"),
    }
    failed = SeveralFailed(errors)
    assert failed.exit_code is ExitCode.CONFIGURATION
    assert str(failed).splitlines() == [
        *("shop.d: another definition", "hint: rebuild it"),
        *("error: shop.b: a text", "hint: mend it"),
        "error: shop.a, shop.c: no route to the store",
    ]


def test_every_exit_code_stands_in_the_table_of_the_commands_page() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert [code.name for code in ExitCode if f"| {int(code)} | " not in page] == []
