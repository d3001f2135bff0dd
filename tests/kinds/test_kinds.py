"""Every kind's class offers what the code that asks for it expects."""

import inspect
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from sluice.cli.main import main
from sluice.declare.column_lineage import Columns
from sluice.declare.registry import BUILT_IN, Kind, commands_of_kinds, kind, kinds
from sluice.declare.table_spec import TableSpec
from sluice.engine.operator import Unstored
from sluice.engine.plan import Maker
from sluice.engine.tracing import Absence, Lineage
from sluice.operate.delivering import Delivering, Resuming
from sluice.operate.explain import Planned
from sluice.read.changelog import Mapped
from sluice.read.lake import Opener, Reading
from sluice.read.naming import Naming
from sluice.read.pending import Lagging, Landed
from sluice.report.pages import Block

PROTOCOLS = (
    *(Columns, Maker, Unstored, Lineage, Absence, Opener, Reading, Mapped, Naming),
    *(Landed, Lagging, Planned, Delivering, Resuming, Block),
)
IMPORTED = """
import sys
from sluice.declare.registry import {asked}
{asked}({name!r})
print([name for name in {unwanted!r} if name in sys.modules])
"""


def parameters(method: object) -> list[str]:
    assert callable(method)
    return list(inspect.signature(method).parameters)


def lacking(offered: type, protocol: type) -> Iterator[str]:
    """List what a class lacks of a protocol that it has some of."""
    for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_"):
            continue
        mine = getattr(offered, name, None)
        if mine is None or parameters(mine) != parameters(wanted):
            yield f"{name}({', '.join(parameters(wanted))})"


def has_some_of(offered: type, protocol: type) -> bool:
    return any(name in dir(offered) for name in vars(protocol) if not name.startswith("_"))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.__name__)
def test_a_class_that_offers_something_offers_all_of_it(protocol: type) -> None:
    some = [each for each in kinds() if has_some_of(type(each), protocol)]
    assert some
    for each in some:
        assert [*lacking(type(each), protocol)] == [], each.name
        assert isinstance(each, protocol)


@pytest.mark.parametrize("each", kinds(), ids=lambda each: each.name)
def test_a_class_offers_nothing_that_nobody_asks_for(each: Kind) -> None:
    asked = {"model", *(name for one in (Kind, *PROTOCOLS) for name in vars(one))}
    assert [name for name in vars(type(each)) if name not in asked and name[0] != "_"] == []


def test_a_class_that_lacks_something_is_seen() -> None:
    class Half:
        def naming_options(self, table: object) -> None: ...

    assert has_some_of(Half, Naming)
    assert [*lacking(Half, Naming)] == [
        "find_ranges(self, table, spec, given)",
        "naming_options(self)",
    ]


@pytest.mark.parametrize("each", kinds(), ids=lambda each: each.name)
def test_a_kind_is_declared(each: Kind) -> None:
    assert issubclass(each.model, TableSpec)
    assert "description" in each.model.model_fields
    assert kind(each.name) is each


def test_kinds_are_listed_by_their_names() -> None:
    assert [each.name for each in kinds()] == [*BUILT_IN]


def imported(asked: str, name: str | None, *unwanted: str) -> str:
    code = IMPORTED.format(asked=asked, name=name, unwanted=unwanted)
    return subprocess.run(
        [sys.executable, "-c", code], check=True, text=True, capture_output=True
    ).stdout.strip()


def test_classes_are_imported_without_spark_and_delta_lake() -> None:
    assert imported("kinds", None, "pyspark", "py4j", "deltalake", "pyarrow", "click") == "[]"


def test_a_class_is_imported_without_those_of_other_kinds() -> None:
    others = [path.rpartition(".")[0] for name, path in BUILT_IN.items() if name != "topk"]
    assert imported("kind", "topk", *others) == "[]"


def test_commands_have_a_line_of_help_and_names_of_their_own() -> None:
    assert sorted(commands_of_kinds()) == ["fetch", "top"]
    context = click.Context(main)
    assert isinstance(main, click.Group)
    names = main.list_commands(context)
    assert len(names) == len({*names})
    found = {name: main.get_command(context, name) for name in commands_of_kinds()}
    assert all(c and c.name == name and c.short_help for name, c in found.items())


def test_a_list_of_commands_imports_no_kind() -> None:
    code = "from sluice.cli.main import main; main(['--help'], standalone_mode=False)"
    unwanted = [path.rpartition(".")[0] for path in BUILT_IN.values()]
    code += f"; import sys; sys.exit(str([name for name in {unwanted} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.stderr.strip() == "[]", done.stderr
