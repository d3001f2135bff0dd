"""Meaning of a table, as JSON and as a fingerprint that changes when its rows would.

Two spellings of one declaration have one fingerprint. These don't count: formatting of YAML and
SQL, file names, columns taken from files, descriptions, expectations, and how work is done.

Differences of two meanings are shown by fields as in YAML, with their values as text. The model of
the kind's declarations shows what is a column's name in a meaning, a list of named parts, or
something that users write as one text.

A meaning can also be put as if an input still had its old name. It equals the meaning by which a
table was built exactly if only that name has changed since.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from sluice.declare.document import Where
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.language import Model
from sluice.language.expression import Expression, Written
from sluice.language.interval import Duration
from sluice.language.names import MARK, rename_id
from sluice.language.syntax import requalify

SILENT = frozenset({"name", "pipeline", "kind", "description", "expect"})  # of every kind
AS_WRITTEN = frozenset({"text"})


def definition(table: Table) -> str:
    """Return the fingerprint of the table's meaning: 16 hexadecimal digits."""
    return fingerprint(meaning(table))


def definition_of_deliveries(table: Table) -> str:
    """Return the fingerprint for rows as delivered; a source chooses the last of a key later."""
    return fingerprint(meaning_of_deliveries(table))


def meaning_of_deliveries(table: Table) -> dict[str, Any]:
    """Return the meaning of a table's rows as delivered."""
    return meaning(table, table.spec.CHOOSING)


def meaning(table: Table, silent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the table's meaning as JSON, without the fields in `silent`."""
    through = [meaning(view) for view in table.through]
    return {
        "kind": table.kind,
        "columns": sorted(set(table.columns) - table.taken),
        "key": list(table.key),
        "hidden": sorted(table.hidden),
        "inputs": list(table.inputs),
        "declared": meant(table.spec, SILENT | table.spec.SILENT | silent),
        **({"through": through} if through else {}),
    }


def fingerprint(meaning: dict[str, Any]) -> str:
    """Return the fingerprint of a meaning."""
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def meant(model: BaseModel, silent: frozenset[str]) -> dict[str, Any]:
    """Return the fields that count and differ from their defaults."""
    return {
        name: canonical(getattr(model, name))
        for name, field in type(model).model_fields.items()
        if name not in silent
        and getattr(model, name) != field.get_default(call_default_factory=True)
    }


def canonical(value: Any) -> Any:
    """Return the value as JSON; SQL as regenerated, not as written."""
    match value:
        case Expression() | Duration():
            return value.sql
        case BaseModel():
            return meant(value, AS_WRITTEN if isinstance(value, Written) else frozenset())
        case Mapping():
            return {str(key): canonical(part) for key, part in value.items()}
        case frozenset():
            return sorted(map(canonical, value))
        case list() | tuple():
            return [canonical(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


Path = tuple[str, ...]
Part = tuple[str, Any, Any]  # name, value, declared type


class Field(NamedTuple):
    """One field; `is_named`: users chose the last name of its path, such as that of a column."""

    path: Path
    text: str
    is_named: bool


def fields(value: Any, of: Any, path: Path = (), *, is_named: bool = False) -> Iterator[Field]:
    """Yield every field below a value; `of`: the type that declares the value."""
    of = _plain_type(of, value)
    if isinstance(value, Mapping) and not _is_written(of):
        for name, part, declared in _parts(value, of):
            yield from fields(part, declared, (*path, name), is_named=not _is_model(of))
    elif _have_names(value, element := _values(of)):
        for name, part, declared in _parts_by_name(value, element):
            yield from fields(part, declared, (*path, name), is_named=True)
    else:
        yield Field(path, text(value, of), is_named)


def text(value: Any, of: Any = Any) -> str:
    """Return a value as in a declaration."""
    of = _plain_type(of, value)
    if _is_written(of) and _is_complete(value, of):
        spelled: str = of.spelled(value)
        return spelled
    match value:
        case Mapping():
            parts = (f"{name}: {text(part, type_)}" for name, part, type_ in _parts(value, of))
            return f"{{{', '.join(parts)}}}"
        case list() | tuple():
            return f"[{', '.join(text(part, _values(of)) for part in value)}]"
        case None:
            return "null"
        case bool():
            return str(value).lower()
    return str(value)


def part_of(value: Any, of: Any, key: str | int) -> tuple[str | int, Any]:
    """Return the name in a meaning of a part that YAML calls `key`, and the type that declares it.

    `value`: the whole in the meaning, `of`: the type that declares it.
    """
    of = _plain_type(of, value)
    if not _is_model(of):
        return key, _values(of)
    found = (name for name, field in of.model_fields.items() if key in (name, field.alias))
    name = next(found, key)
    return name, of.model_fields[name].annotation if name in of.model_fields else Any


def _plain_type(of: Any, value: Any) -> Any:
    """Return a declared type without annotations; of several, one that a value may have."""
    if get_origin(of) is Annotated:
        return _plain_type(get_args(of)[0], value)
    if get_origin(of) not in (Union, UnionType):
        return of
    found = [_plain_type(each, value) for each in get_args(of) if each is not NoneType]
    return next((each for each in found if _may_hold(each, value)), found[0])


def _may_hold(of: Any, value: Any) -> bool:
    if isinstance(value, Mapping):
        return _is_model(of) or _is_mapping(of)
    return isinstance(value, list | tuple) == (get_origin(of) in (tuple, list, frozenset))


def _is_model(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, Model)


def _is_written(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, Written)


def _is_mapping(of: Any) -> bool:
    return get_origin(of) in (dict, Mapping)


def _is_complete(value: Any, of: type[Written]) -> bool:
    """Return whether all is recorded that users must write; older releases may lack some."""
    if not isinstance(value, Mapping):
        return True
    required = {name for name, field in of.model_fields.items() if field.is_required()}
    return required - AS_WRITTEN <= value.keys()


def _values(of: Any) -> Any:
    types = get_args(of)
    return types[1 if _is_mapping(of) else 0] if types else Any


def _parts(value: Mapping[str, Any], of: Any) -> Iterator[Part]:
    """Yield the fields of a model by their keys in YAML, or the values of a user's mapping."""
    declared = of.model_fields if _is_model(of) else {}
    for name, part in value.items():
        if name in declared:
            yield of.key_of(name), part, declared[name].annotation
        else:
            yield name, part, _values(of) if _is_mapping(of) else Any


def _have_names(value: Any, of: Any) -> bool:
    """Return whether parts are named by their first field, as columns and joined tables are."""
    if not isinstance(value, list | tuple) or not _is_model(of) or _is_written(of):
        return False
    return all(isinstance(part, Mapping) and _first(of) in part for part in value)


def _first(model: type[Model]) -> str:
    return next(iter(model.model_fields))


def _parts_by_name(value: Sequence[Mapping[str, Any]], model: type[Model]) -> Iterator[Part]:
    """Yield the parts of a list by their names; a part with other fields comes without its name."""
    names = [str(part[_first(model)]) for part in value]
    if len({*names}) < len(names):
        names = [f"{nth}_{name}" for nth, name in enumerate(names, 1)]
    for name, part in zip(names, value, strict=True):
        others = {key: other for key, other in part.items() if key != _first(model)}
        if not others:
            yield name, name, str
        elif len(model.model_fields) == 2:
            ((key, other),) = others.items()
            yield name, other, model.model_fields[key].annotation
        else:
            yield name, others, model


LONGEST = 60  # characters of a value that are shown
BEFORE = 20  # of them before the first difference
DERIVED = ("key", "inputs", "hidden")
UNKNOWN = "an older release built it, so the difference is unknown"

Meaning = Mapping[str, Any]


def differences(before: Meaning, now: Meaning) -> str:
    """Return what differs, in one line; `before` is empty if it was not recorded."""
    return ", ".join(_differences(before, now)) if before else UNKNOWN


def _differences(before: Meaning, now: Meaning) -> list[str]:
    """Return each difference; derived properties count only where nothing else differs."""
    old, new = before["columns"], now["columns"]
    said = [f"+ {name}" for name in new if name not in old]
    said += [f"- {name}" for name in old if name not in new]
    if before["kind"] != now["kind"]:
        return [f"kind {before['kind']} -> {now['kind']}", *said]
    said += _field_differences(before, now)
    for was, is_ in zip_longest(before.get("through", ()), now.get("through", ())):
        if was != is_:
            said += _differences(was, is_) if was and is_ else ["the views that it reads"]
    pairs = ((name, text(before[name]), text(now[name])) for name in DERIVED)
    said = said or [f"{name} {_pair(was, is_)}" for name, was, is_ in pairs if was != is_]
    return said or ["the order of its parts"]


def _field_differences(before: Meaning, now: Meaning) -> Iterator[str]:
    """Yield the fields that differ, except those of the columns that are named already."""
    named, model = {*before["columns"]} ^ {*now["columns"]}, kind(now["kind"]).model
    old, new = ({f.path: f for f in fields(m["declared"], model)} for m in (before, now))
    for path in dict.fromkeys((*old, *new)):
        was, is_, shown = old.get(path), new.get(path), ".".join(path)
        if was and is_ and was.text != is_.text:
            yield f"{shown} {_pair(was.text, is_.text)}"
        elif is_ and not was and not (is_.is_named and path[-1] in named):
            yield f"+ {shown} {_cut(is_.text)}"
        elif was and not is_ and not (was.is_named and path[-1] in named):
            yield f"- {shown} {_cut(was.text)}"


def _pair(old: str, new: str) -> str:
    """Return both texts, long ones from shortly before their first difference."""
    ends = min(len(old), len(new))
    first = next((n for n in range(ends) if old[n] != new[n]), ends)
    start = max(first - BEFORE, 0) if max(len(old), len(new)) > LONGEST else 0
    return f"{_cut(old, start)} -> {_cut(new, start)}"


def _cut(text: str, start: int = 0) -> str:
    shown = text[start : start + LONGEST]
    return f"{'...' if start else ''}{shown}{'...' if start + LONGEST < len(text) else ''}"


def definitions_before(table: Table, old: str, new: str) -> set[str]:
    """Return the fingerprints of a definition that names `old` where it now names `new`.

    They are for expressions that name the table and for those that don't. None if the table's own
    rows hold names of its inputs.
    """
    if table.spec.rows_name_inputs:
        return set()
    before = meaning(table)
    before["inputs"] = [rename_id(input_, new, old) for input_ in table.inputs]
    for reference in table.spec.references():
        named = table.reference(reference.name)
        if rename_id(named, new, old) != named:
            written, mark, suffix = reference.name.partition(MARK)
            like = (old if "." in written else old.partition(".")[2]) + mark + suffix
            _rename(before["declared"], type(table.spec), reference.where, like)
    names = (new.partition(".")[2], old.partition(".")[2])
    return {fingerprint(before), fingerprint(_requalify(before, *names))}


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


def _requalify(value: Any, new: str, old: str) -> Any:
    """Return a meaning whose expressions qualify columns with the old name."""
    match value:
        case dict():
            return {key: _requalify(part, new, old) for key, part in value.items()}
        case list():
            return [_requalify(part, new, old) for part in value]
        case str() if f"{new}." in value:
            with suppress(ValueError):  # some texts are no expressions
                return requalify(value, {new: old})
    return value
