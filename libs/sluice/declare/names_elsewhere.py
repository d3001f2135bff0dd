"""Names in a declaration that refer outside it: modules, and tables to compare with."""

from collections.abc import Collection, Iterable, Mapping

from sluice.declare.building import Declaration
from sluice.declare.text.mistakes import Mistakes
from sluice.language.names import listing, unknown


def check_modules(
    declared: Iterable[Declaration], modules: Collection[str], mistakes: Mistakes
) -> None:
    """Note users' aggregators and sort keys from modules that the project does not list."""
    for declaration in declared:
        for at, function in declaration.spec.own_code() if declaration.spec else ():
            module = function.partition(":")[0]
            if module not in modules:
                message = (
                    f"the module {module!r} is not listed under `modules:` of sluice.yaml; "
                    f"modules are: {listing(modules)}"
                )
                mistakes.add(declaration.document, (*declaration.where, *at), message)


def check_compared(declared: Mapping[str, Declaration], mistakes: Mistakes) -> None:
    """Note tables that expectations name but that don't exist."""
    for declaration in declared.values():
        own = f"{declaration.id.split('.')[0]}."
        expectations = declaration.spec.expectations if declaration.spec else ()
        for i, expectation in enumerate(expectations):
            name = expectation.other_table
            if name and name not in declared and own + name not in declared:
                known = [n.removeprefix(own) for n in declared if n != declaration.id]
                where = (*declaration.where, "expect", i)
                mistakes.add(declaration.document, where, unknown("table", name, known))
