"""Differences of two meanings of a table, in words: `+ air_time`, `limit 10 -> 12`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

LONGEST = 60  # characters of a value that are shown
BEFORE = 20  # of them before the first difference
CALL = re.compile(r"_sluice_over_\w+")
DERIVED = ("key", "inputs", "hidden")
NAMES = ("name", "table", "dimension")  # of the parts of a list
IN_YAML = {"columns": "schema"}
UNKNOWN = "an older release built it, so the difference is unknown"

Meaning = Mapping[str, Any]


def differences(before: Meaning, now: Meaning) -> str:
    """Return what differs, in one line; `before` is empty if it was not recorded."""
    return ", ".join(_differences(before, now)) if before else UNKNOWN


def _differences(before: Meaning, now: Meaning) -> list[str]:
    """Return each difference; derived properties count only where nothing else differs."""
    said = list(_columns(before, now))
    if before["kind"] != now["kind"]:
        return [f"kind {before['kind']} -> {now['kind']}", *said]
    named = {*before["columns"]} ^ {*now["columns"]}
    said += _declared(before["declared"], now["declared"], named)
    for old, new in zip_longest(before.get("through", ()), now.get("through", ())):
        if old != new:
            said += _differences(old, new) if old and new else ["views over dimensions"]
    pairs = ((name, _text(before[name]), _text(now[name])) for name in DERIVED)
    said = said or [f"{name} {_pair(old, new)}" for name, old, new in pairs if old != new]
    return said or ["the order of its parts"]


def _columns(before: Meaning, now: Meaning) -> Iterator[str]:
    yield from (f"+ {name}" for name in now["columns"] if name not in before["columns"])
    yield from (f"- {name}" for name in before["columns"] if name not in now["columns"])


def _declared(before: Meaning, now: Meaning, named: set[str]) -> Iterator[str]:
    """Yield the fields that differ, except those of the columns that are named already."""
    old, new = dict(_fields(before)), dict(_fields(now))
    for path in dict.fromkeys((*old, *new)):
        if old.get(path) == new.get(path):
            continue
        if path in old and path in new:
            yield f"{_shown(path)} {_pair(old[path], new[path])}"
        elif path[-1] not in named:
            sign, value = ("+", new[path]) if path in new else ("-", old[path])
            yield f"{sign} {_shown(path)} {_cut(value)}"


def _fields(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every field below a declaration by its path, with its value as text."""
    if isinstance(value, Mapping) and not _is_expression(value):
        for name, part in value.items():
            yield from _fields(part, (*path, name))
    elif parts := _by_name(value):
        for name, part in parts.items():
            yield from _fields(part, (*path, name))
    else:
        yield path, _text(value)


def _by_name(value: Any) -> dict[str, Any]:
    """Return the parts of a list by their names, such as columns and their types."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(isinstance(p, Mapping) and {*NAMES} & p.keys() for p in value):
        return {}
    names = [next(str(part[name]) for name in NAMES if name in part) for part in value]
    if len({*names}) < len(names):
        names = [f"{nth}_{name}" for nth, name in enumerate(names, 1)]
    rest = ({k: v for k, v in part.items() if k != "name"} for part in value)
    return dict(zip(names, map(_only, rest), strict=True))


def _only(part: Mapping[str, Any]) -> Any:
    return next(iter(part.values())) if len(part) == 1 else part


def _is_expression(value: Mapping[str, Any]) -> bool:
    return "expression" in value or "function" in value


def _text(value: Any) -> str:
    """Return a value as in a declaration."""
    match value:
        case Mapping():
            return _part(value)
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
        case bool() | None:
            return str(value).lower()
    return str(value)


def _part(value: Mapping[str, Any]) -> str:
    """Return an order or expression, a call, or several fields."""
    if "expression" in value:
        return " ".join([_with_calls(value), *_direction(value)])
    if "function" in value:
        others = (_text(part) for name, part in value.items() if name != "function")
        return f"{value['function']}({', '.join(others)})"
    return f"{{{', '.join(f'{name}: {_text(part)}' for name, part in value.items())}}}"


def _pair(old: str, new: str) -> str:
    """Return both texts, long ones from shortly before their first difference."""
    ends = min(len(old), len(new))
    first = next((n for n in range(ends) if old[n] != new[n]), ends)
    start = max(first - BEFORE, 0) if max(len(old), len(new)) > LONGEST else 0
    return f"{_cut(old, start)} -> {_cut(new, start)}"


def _cut(text: str, start: int = 0) -> str:
    shown = text[start : start + LONGEST]
    return f"{'...' if start else ''}{shown}{'...' if start + LONGEST < len(text) else ''}"


def _with_calls(value: Mapping[str, Any]) -> str:
    """Return an expression with its window functions, which are declared beside it."""
    expression = str(value["expression"])
    places, calls = dict.fromkeys(CALL.findall(expression)), value.get("calls", ())
    for place, call in zip(places, calls, strict=False):
        expression = expression.replace(place, f"{call['sql']} OVER {call['window']}")
    return expression


def _direction(order: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of an order, without those that it has by default."""
    is_descending, is_null_first = order.get("descending", False), order.get("nulls_first", True)
    if is_descending:
        yield "desc"
    if is_null_first == is_descending:
        yield f"nulls {'first' if is_null_first else 'last'}"


def _shown(path: tuple[str, ...]) -> str:
    return ".".join(IN_YAML.get(name, name.removesuffix("_")) for name in path)
