"""Fields of a declaration that a table's meaning records: as in YAML, with their values as text.

A meaning is JSON. The model of the kind's declarations shows what is a column's name in it, a list
of named parts, or something that users write as one text.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from sluice.declare.meaning.definition import AS_WRITTEN
from sluice.language.expression import Written

Path = tuple[str, ...]
Part = tuple[str, Any, Any]  # name, value, declared type


def fields(value: Any, of: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every field below a value by its path; `of`: the type that declares the value."""
    of = _plain(of)
    if isinstance(value, Mapping) and not _is_written(of):
        for name, part, declared in _parts(value, of):
            yield from fields(part, declared, (*path, name))
    elif isinstance(value, list | tuple) and _have_names(value, element := _element(of)):
        for name, part, declared in _named(value, element):
            yield from fields(part, declared, (*path, name))
    else:
        yield path, text(value, of)


def text(value: Any, of: Any = Any) -> str:
    """Return a value as in a declaration."""
    of = _plain(of)
    if _is_written(of) and _is_complete(value, of):
        spelled: str = of.spelled(value)
        return spelled
    match value:
        case Mapping():
            parts = (f"{name}: {text(part, type_)}" for name, part, type_ in _parts(value, of))
            return f"{{{', '.join(parts)}}}"
        case list() | tuple():
            return f"[{', '.join(text(part, _element(of)) for part in value)}]"
        case bool() | None:
            return str(value).lower()
    return str(value)


def _plain(of: Any) -> Any:
    """Return a declared type without annotations, and without None."""
    if get_origin(of) is Annotated:
        return _plain(get_args(of)[0])
    if get_origin(of) in (Union, UnionType):
        return _plain(next(each for each in get_args(of) if each is not NoneType))
    return of


def _is_model(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, BaseModel)


def _is_written(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, Written)


def _is_complete(value: Any, of: type[Written]) -> bool:
    """Return whether all is recorded that users must write; older releases may lack some."""
    if not isinstance(value, Mapping):
        return True
    required = {name for name, field in of.model_fields.items() if field.is_required()}
    return required - AS_WRITTEN <= value.keys()


def _element(of: Any) -> Any:
    """Return the declared type of a list's elements."""
    return _plain(next(iter(get_args(of)), Any))


def _parts(value: Mapping[str, Any], of: Any) -> Iterator[Part]:
    """Yield the fields of a model by their keys in YAML, or the values of a user's mapping."""
    declared = of.model_fields if _is_model(of) else {}
    _, values = get_args(of) or (Any, Any)
    for name, part in value.items():
        if field := declared.get(name):
            yield field.alias or name, part, field.annotation
        else:
            yield name, part, values


def _have_names(value: Sequence[Any], of: Any) -> bool:
    """Return whether parts are named by their first field, as columns and joined tables are."""
    if not _is_model(of) or _is_written(of):
        return False
    return all(isinstance(part, Mapping) and _first(of) in part for part in value)


def _first(model: type[BaseModel]) -> str:
    return next(iter(model.model_fields))


def _named(value: Sequence[Mapping[str, Any]], model: type[BaseModel]) -> Iterator[Part]:
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
