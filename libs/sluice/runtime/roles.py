"""The modules in which a kind of table says what is special to it: `<kind>_<role>`, by name.

Nothing else in this package knows which kinds there are.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


@cache
def part(kind: str, role: str) -> ModuleType | None:
    """The module of a kind for a role; None where the kind has nothing special to say."""
    name = f"sluice.runtime.{kind}_{role}"
    return import_module(name) if find_spec(name) else None
