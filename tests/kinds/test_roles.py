"""Every kind's modules are what the code that asks for them expects."""

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from sluice.airflow.page.block import Block
from sluice.cli.kinds import Commands
from sluice.declare.meaning.column_lineage import Columns
from sluice.declare.registry import BUILT_IN, ROLES, Kind, kind, kinds
from sluice.declare.resolution.resolver import Resolver
from sluice.declare.table_spec import TableSpec
from sluice.engine.planning.nodes import Maker
from sluice.engine.query.absence import Absence
from sluice.engine.query.lineage import Lineage
from sluice.engine.query.unstored import Unstored
from sluice.operate.delivering import Delivering, Resuming
from sluice.operate.explain import Planned
from sluice.read.changelog import Mapped
from sluice.read.lake import Reader
from sluice.read.naming import Naming
from sluice.read.pending import Lagging, Landed

PROTOCOLS: dict[str, type] = {
    "resolve": Resolver,
    "nodes": Maker,
    "rows": Unstored,
    "columns": Columns,
    "lineage": Lineage,
    "absence": Absence,
    "reader": Reader,
    "maps": Mapped,
    "naming": Naming,
    "pending": Landed,
    "lag": Lagging,
    "plan": Planned,
    "deliver": Delivering,
    "resume": Resuming,
    "commands": Commands,
    "page": Block,
}
MODULES = [(each, role) for each in kinds() for role in ROLES if each.module(role)]


def lacking(module: ModuleType, protocol: type) -> Iterator[str]:
    """List what a module lacks of a role."""
    for name in protocol.__annotations__:
        if not hasattr(module, name):
            yield name
    for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_"):
            continue
        mine = getattr(module, name, None)
        parameters = list(inspect.signature(wanted).parameters)[1:]
        if mine is None or list(inspect.signature(mine).parameters) != parameters:
            yield f"{name}({', '.join(parameters)})"


@pytest.mark.parametrize(("of", "role"), MODULES, ids=lambda one: getattr(one, "name", one))
def test_a_module_has_what_its_role_asks_for(of: Kind, role: str) -> None:
    module = of.module(role)
    assert module is not None
    if role != "spec":
        assert list(lacking(module, PROTOCOLS[role])) == []


def test_every_role_says_what_it_asks_for() -> None:
    assert {"spec", *PROTOCOLS} == {*ROLES}


def test_a_module_that_lacks_something_is_seen() -> None:
    module = ModuleType("reader")
    module.opened = lambda lake, table: None  # type: ignore[attr-defined]
    wanted = "opened(lake, table, version, backward_iteration)"
    assert list(lacking(module, Reader)) == ["VERBS", wanted]


@pytest.mark.parametrize("of", kinds(), ids=lambda of: of.name)
def test_a_kind_is_declared_and_resolved(of: Kind) -> None:
    assert issubclass(of.model, TableSpec)
    assert "description" in of.model.model_fields
    assert of.module("resolve") is not None
    assert kind(of.name) == of


def test_kinds_have_names_of_their_own() -> None:
    names = [each.name for each in kinds()]
    assert len(names) == len(set(names)) == len(BUILT_IN)


def test_commands_have_a_line_of_help_and_names_of_their_own() -> None:
    modules = (each.module("commands") for each in kinds())
    commands = [command for module in modules if module for command in module.COMMANDS]
    assert all(command.short_help for command in commands)
    assert sorted(str(command.name) for command in commands) == ["fetch", "top"]
