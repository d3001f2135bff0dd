"""Key of a table as its readers name it: a value for one column, a sequence for several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sluice.errors import UsageError
from sluice.language.names import unknown
from sluice.read.conditions.key_order import KeyRange, Places, only, places
from sluice.read.conditions.values import check, from_text

Key = Any


@dataclass(frozen=True)
class KeyColumns:
    """Key columns of `table`, with their types."""

    table: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    @classmethod
    def of(cls, table: str, names: Sequence[str], schema: pa.Schema) -> "KeyColumns":
        return cls(table, tuple(names), tuple(schema.field(name).type for name in names))

    def first(self, count: int) -> "KeyColumns":
        """Return only the first columns."""
        return KeyColumns(self.table, self.names[:count], self.types[:count])

    def exactly(self, key: Key) -> KeyRange:
        """Return the range of that key; every column must be given."""
        values = self.checked(key)
        if len(values) != len(self.names):
            raise self.misfit(len(values))
        return only(self.names, values)

    def between(self, key_from: Key, key_to: Key) -> tuple[KeyRange, ...]:
        """Return the range of two inclusive bounds on all or the first columns; None is open."""
        if key_from is None and key_to is None:
            return ()
        return (KeyRange(self.names, self._bound(key_from), self._bound(key_to)),)

    def are_backward(self, key_from: Key, key_to: Key) -> bool:
        """True if the first of two bounds is after the second."""
        low, high = self._bound(key_from) or (), self._bound(key_to) or ()
        named = min(len(low), len(high))
        return low[:named] > high[:named]

    def checked(self, key: Key) -> tuple[Any, ...]:
        """Return the key's values in the columns' own types."""
        values = tuple(key) if isinstance(key, tuple | list) else (key,)
        if not 0 < len(values) <= len(self.names):
            raise self.misfit(len(values))
        columns = zip(values, self.types, self.names, strict=False)
        return tuple(check(value, kind, name) for value, kind, name in columns)

    def given(self, key: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return a key's values in order, from either values in order or values by column."""
        is_start = {*self.names[: len(named)]} == {*named}
        if bool(key) == bool(named) or not is_start:
            wrong = next(
                (unknown("key column", n, self.names) for n in named if n not in self.names), ""
            )
            raise UsageError(
                wrong or "a key's values are given all in its order, or each by its column's name",
                hint=f"the key of {self.table!r} is ({', '.join(self.names)})",
            )
        return tuple(key) or tuple(named[name] for name in self.names[: len(named)])

    def parse(self, texts: Sequence[str]) -> tuple[Any, ...] | None:
        """Return a key from a command line; None if nothing is given."""
        if len(texts) > len(self.names):
            raise self.misfit(len(texts))
        columns = zip(texts, self.types, self.names, strict=False)
        return tuple(from_text(text, kind, name) for text, kind, name in columns) or None

    def _bound(self, key: Key) -> Places | None:
        return None if key is None else places(self.checked(key))

    def misfit(self, given: int) -> UsageError:
        if not self.names:
            return UsageError(
                f"the rows of {self.table!r} have no key to identify one by",
                hint=f"`sluice read {self.table} --where ...` finds them",
            )
        values = "1 value doesn't" if given == 1 else f"{given} values don't"
        names = ", ".join(self.names)
        return UsageError(f"the key of {self.table!r} is ({names}): {values} fit it")
