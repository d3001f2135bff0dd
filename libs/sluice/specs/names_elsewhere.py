"""Names in a declaration that mean something outside of it: modules, and tables to compare with."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from sluice.specs.building import Declaration
from sluice.specs.cogroup import Cogroup
from sluice.specs.document import Where
from sluice.specs.mistakes import Mistakes
from sluice.specs.names import listing, unknown
from sluice.specs.table import Spec
from sluice.specs.topk import TopK


def check_modules(
    declared: Iterable[Declaration], modules: Collection[str], mistakes: Mistakes
) -> None:
    """Note users' aggregators and sort keys from modules that the project does not list."""
    for declaration in declared:
        for at, function in _own(declaration.spec):
            module = function.partition(":")[0]
            if module not in modules:
                message = (
                    f"the module {module!r} is not listed under `modules:` of sluice.yaml; "
                    f"modules are: {listing(modules)}"
                )
                mistakes.add(declaration.document, (*declaration.where, *at), message)


def _own(spec: Spec | None) -> Iterator[tuple[Where, str]]:
    """The users' functions and classes that a declaration names, and where."""
    if isinstance(spec, TopK):
        for i, key in enumerate(spec.order_by):
            if key.function:
                yield ("order_by", i), key.function
    for stream_name, stream in spec.streams.items() if isinstance(spec, Cogroup) else ():
        for name, aggregate in stream.aggregates.items():
            if aggregate.is_python:
                yield ("streams", stream_name, "aggregates", name), aggregate.function


def check_compared(declared: Mapping[str, Declaration], mistakes: Mistakes) -> None:
    """Note tables that expectations name and that aren't there."""
    for declaration in declared.values():
        own = f"{declaration.id.split('.')[0]}."
        for i, expectation in enumerate(getattr(declaration.spec, "expect", ())):
            name = expectation.other_table
            if name and name not in declared and own + name not in declared:
                known = [n.removeprefix(own) for n in declared if n != declaration.id]
                where = (*declaration.where, "expect", i)
                mistakes.add(declaration.document, where, unknown("table", name, known))
