"""Differences of two meanings of a table, in words: `+ air_time`, `limit 10 -> 12`."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from sluice.declare.meaning.fields import fields, text
from sluice.declare.registry import kind

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
    said = list(_columns(before, now))
    if before["kind"] != now["kind"]:
        return [f"kind {before['kind']} -> {now['kind']}", *said]
    said += _declared(before, now)
    for old, new in zip_longest(before.get("through", ()), now.get("through", ())):
        if old != new:
            said += _differences(old, new) if old and new else ["the views that it reads"]
    pairs = ((name, text(before[name]), text(now[name])) for name in DERIVED)
    said = said or [f"{name} {_pair(old, new)}" for name, old, new in pairs if old != new]
    return said or ["the order of its parts"]


def _columns(before: Meaning, now: Meaning) -> Iterator[str]:
    yield from (f"+ {name}" for name in now["columns"] if name not in before["columns"])
    yield from (f"- {name}" for name in before["columns"] if name not in now["columns"])


def _declared(before: Meaning, now: Meaning) -> Iterator[str]:
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
