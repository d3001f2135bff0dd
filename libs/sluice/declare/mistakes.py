"""Mistakes, collected as found and raised together, each with its file, line and place."""

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sluice.declare.document import Document, Where, hide_values
from sluice.errors import ConfigError
from sluice.language import DRAFT, Mistaken, Model
from sluice.language.names import unknown
from sluice.language.syntax import shorten
from sluice.language.types import listed_once

WANTED = {
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}
Validated = TypeVar("Validated", bound=BaseModel)


@dataclass
class Mistakes:
    """Every mistake found so far."""

    found: list[tuple[str, int, str]] = field(default_factory=list)

    def add(self, document: Document, where: Where, message: str) -> None:
        """Note a mistake at that place of that document."""
        place = show(where)
        file, line, message = document.locate(where, message)
        text = f"{place}: {message}" if place else message
        self.add_at(file, line, hide_values(text, document.values))

    def add_at(self, path: str, line: int, text: str) -> None:
        """Note a mistake at a line."""
        if (path, line, text) not in self.found:
            self.found.append((path, line, text))

    def withdraw(self, document: Document, where: Where) -> None:
        """Withdraw what was noted there, because it followed from another mistake."""
        place = (document.file(where), f"{show(where)}: ")
        self.found = [
            (path, line, text)
            for path, line, text in self.found
            if path != place[0] or not text.startswith(place[1])
        ]

    def raise_any(self) -> None:
        """Raise all mistakes as one ConfigError, if there are any."""
        if self.found:
            every = (f"{path}:{line}: {text}" for path, line, text in sorted(self.found))
            raise ConfigError(listed_once(every))

    def validate(
        self, model: type[Validated], data: Any, document: Document, where: Where
    ) -> Validated | None:
        """Return the data as that model; None, with its mistakes noted, if it isn't one."""
        found, problems = _validate(model, data, document)
        self._note(problems, model, data, document, where)
        return found

    def draft(
        self, model: type[Validated], data: Any, document: Document, where: Where
    ) -> "Draft[Validated] | None":
        """Return what is left of data with mistakes; further ones are noted.

        Texts that can't be read have stand-ins, other mistaken values are left out. None if the
        rest is not that model.
        """
        broken = [
            explain(problem, model, data)[0] for problem in _validate(model, data, document)[1]
        ]
        found, problems = _validate(model, data, document, is_draft=True)
        if found is None:
            self._note(problems, model, data, document, where)
            places = [_existing(problem["loc"], data, problem["type"]) for problem in problems]
            found, _ = _validate(model, _without(data, places), document, is_draft=True)
        return Draft(found, tuple(broken), is_whole=not problems) if found else None

    def _note(
        self,
        problems: list[ErrorDetails],
        model: type[BaseModel],
        data: Any,
        document: Document,
        where: Where,
    ) -> None:
        for problem in telling(problems):
            at, message = explain(problem, model, data)
            error = problem.get("ctx", {}).get("error")
            for one in error.messages if isinstance(error, Mistaken) else (message,):
                self.add(document, (*where, *at), one)


@dataclass(frozen=True)
class Draft(Generic[Validated]):
    """A declaration with mistakes, without them.

    `broken`: their places; `is_whole`: only texts were replaced, so that it has all its columns.
    """

    spec: Validated
    broken: tuple[Where, ...]
    is_whole: bool


def _validate(
    model: type[Validated], data: Any, document: Document, *, is_draft: bool = False
) -> tuple[Validated | None, list[ErrorDetails]]:
    context = {"folder": Path(document.path).parent, DRAFT: is_draft}
    try:
        return model.model_validate(data, context=context), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _without(data: Any, places: Iterable[Where]) -> Any:
    """Return the data without what is at these places, the last items of lists first."""
    rest = deepcopy(data)

    def order(place: Where) -> list[tuple[int, str]]:
        return [(part, "") if isinstance(part, int) else (-1, part) for part in place]

    for *way, last in sorted({place for place in places if place}, key=order, reverse=True):
        inner = rest
        for part in way:
            inner = inner[part]
        if not isinstance(inner, dict) or last in inner:
            del inner[last]
    return rest


def telling(problems: list[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Yield the problems, but not `too short` for a list that only lacks a wrong item."""
    for problem in problems:
        loc = problem["loc"]
        deeper = any(p["loc"][: len(loc)] == loc and len(p["loc"]) > len(loc) for p in problems)
        if problem["type"] != "too_short" or not deeper:
            yield problem


def show(where: Where) -> str:
    """Format a place, as `views.invoices.join[0].on`; omit a last index, which the line implies."""
    if where and isinstance(where[-1], int):
        where = where[:-1]
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def explain(problem: ErrorDetails, model: type[BaseModel], data: Any) -> tuple[Where, str]:
    """Return the place of a pydantic problem in the data, and its message in the user's words."""
    where = _existing(problem["loc"], data, problem["type"])
    if problem["type"] == "extra_forbidden":
        return where, unknown("key", str(where[-1]), accepted_keys(model, where[:-1]))
    if problem["type"] == "missing":
        return where[:-1], f"`{where[-1]}` is missing"
    return where, _words(problem)


def _existing(loc: tuple[int | str, ...], data: Any, kind: str) -> Where:
    """Return the part of a location that is in the data; pydantic adds names of union members."""
    where: list[str | int] = []
    for part in loc:
        if isinstance(data, dict) and part in data:  # noqa: SIM114 - the types differ
            data = data[part]
        elif isinstance(part, int) and isinstance(data, list | tuple) and part < len(data):
            data = data[part]
        elif kind != "missing" or part != loc[-1]:
            continue
        where.append(part)
    return tuple(where)


def _words(problem: ErrorDetails) -> str:
    context = problem.get("ctx", {})
    found = problem["input"]
    match problem["type"]:
        case "value_error":
            return str(context["error"])
        case "literal_error":
            expected = re.findall(r"'([^']*)'", context["expected"])
            return unknown("value", str(found), expected)
        case "tuple_type" if isinstance(found, str):
            return f"a list is expected, e.g. [{found}]"
        case "too_short":
            return "at least one is expected"
        case "greater_than_equal":
            return f"{found} is too small: at least {context['ge']} is expected"
    wanted = next((w for kind, w in WANTED.items() if problem["type"].startswith(kind)), None)
    text = wanted or problem["msg"].removeprefix("Input should be ")
    return f"{text} is expected, not {shorten(repr(found))}"


def accepted_keys(model: type[BaseModel], where: Where) -> list[str]:
    """Return the keys that a user may give at that place of a model."""
    for part in where:
        inner = _inner(model, part)
        model = inner or model
    keys = [field.alias or name for name, field in model.model_fields.items()]
    filled = model.LOADED if issubclass(model, Model) else frozenset()
    return [key for key in keys if key not in filled]


def _inner(model: type[BaseModel], part: str | int) -> type[BaseModel] | None:
    for name, info in model.model_fields.items():
        if part in (name, info.alias):
            return next(_models(info.annotation), None)
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)
