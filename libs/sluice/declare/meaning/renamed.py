"""Meaning of a table as if one of its inputs still had its old name.

It equals the meaning by which a table was built exactly if only that name has changed since.
"""

from contextlib import suppress
from typing import Any

from sluice.declare.meaning.definition import fingerprint, meaning
from sluice.declare.meaning.fields import part_of
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.language.internal import MARK, renamed
from sluice.language.syntax import requalified


def definitions_before(table: Table, old: str, new: str) -> set[str]:
    """Return the fingerprints of a definition that names `old` where it now names `new`.

    They are for expressions that name the table and for those that don't. None if the table's own
    rows hold names of its inputs.
    """
    if table.spec.rows_name_inputs:
        return set()
    before = meaning(table)
    before["inputs"] = [renamed(input_, new, old) for input_ in table.inputs]
    for reference in table.spec.references():
        named = table.reference(reference.name)
        if renamed(named, new, old) != named:
            _rename(
                before["declared"], type(table.spec), reference.where, _like(reference.name, old)
            )
    names = (new.partition(".")[2], old.partition(".")[2])
    return {fingerprint(before), fingerprint(_qualified(before, *names))}


def _like(written: str, old: str) -> str:
    """Return the old id as the new one was written: with its pipeline, or without."""
    own, mark, suffix = written.partition(MARK)
    return (old if "." in own else old.partition(".")[2]) + mark + suffix


def _rename(declared: Any, of: Any, where: Where, old: str) -> None:
    """Put the old name at a place of a declaration's meaning, if the meaning has that place.

    `of`: the model of the declaration. The text of a query stays: its table is built again.
    """
    *way, last = where
    for key in way:
        name, of_part = part_of(declared, of, key)
        declared, of = _inside(declared, name), of_part
    name, _ = part_of(declared, of, last)
    at = _inside(declared, name)
    if isinstance(at, dict) and "table" in at:
        if at.get("as_") == at["table"].rpartition(".")[2]:
            at["as_"] = old.rpartition(".")[2]
        at["table"] = old
    elif isinstance(at, str) and not isinstance(declared, str):
        declared[name] = old


def _inside(declared: Any, name: str | int) -> Any:
    try:
        return declared[name]
    except (KeyError, IndexError, TypeError):
        return None


def _qualified(value: Any, new: str, old: str) -> Any:
    """Return a meaning whose expressions qualify columns with the old name."""
    match value:
        case dict():
            return {key: _qualified(part, new, old) for key, part in value.items()}
        case list():
            return [_qualified(part, new, old) for part in value]
        case str() if f"{new}." in value:
            with suppress(ValueError):  # some texts are no expressions
                return requalified(value, {new: old})
    return value
