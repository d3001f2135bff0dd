"""Fields of a declaration that a table's meaning records: as in YAML, with their values as text.

A meaning is JSON. The model of the kind's declarations shows what is a column's name in it, a list
of named parts, or something that users write as one text.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from sluice.declare.meaning.definition import AS_WRITTEN
from sluice.language.expression import Written
from sluice.language.model import Model

Path = tuple[str, ...]
Part = tuple[str, Any, Any]  # name, value, declared type


class Field(NamedTuple):
    """One field; `is_named`: users chose the last name of its path, such as that of a column."""

    path: Path
    text: str
    is_named: bool


def fields(value: Any, of: Any, path: Path = (), *, is_named: bool = False) -> Iterator[Field]:
    """Yield every field below a value; `of`: the type that declares the value."""
    of = _declared(of, value)
    if isinstance(value, Mapping) and not _is_written(of):
        for name, part, declared in _parts(value, of):
            yield from fields(part, declared, (*path, name), is_named=not _is_model(of))
    elif _have_names(value, element := _values(of)):
        for name, part, declared in _named(value, element):
            yield from fields(part, declared, (*path, name), is_named=True)
    else:
        yield Field(path, text(value, of), is_named)


def text(value: Any, of: Any = Any) -> str:
    """Return a value as in a declaration."""
    of = _declared(of, value)
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
    of = _declared(of, value)
    if not _is_model(of):
        return key, _values(of)
    found = (name for name, field in of.model_fields.items() if key in (name, field.alias))
    name = next(found, key)
    return name, of.model_fields[name].annotation if name in of.model_fields else Any


def _declared(of: Any, value: Any) -> Any:
    """Return a declared type without annotations; of several, one that a value may have."""
    if get_origin(of) is Annotated:
        return _declared(get_args(of)[0], value)
    if get_origin(of) not in (Union, UnionType):
        return of
    found = [_declared(each, value) for each in get_args(of) if each is not NoneType]
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
    """Return the declared type of what a mapping or a list has."""
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


def _named(value: Sequence[Mapping[str, Any]], model: type[Model]) -> Iterator[Part]:
    """Yield the parts of a list by their names, without these names where something is left."""
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
