"""Content of a page, in values that know no HTML.

The macro of the same name in `elements.html.j2` writes each part. A `look` is some classes of the
stylesheet. Those of words are `soft`, `small`, `number`, `line` (a line by itself) and so on. Those
of states, such as `passed` and `stopped`, are shown by a `chip` in a word and explained by a `key`.

HTML of pages.

A page is self-contained: no font, picture or style from elsewhere. A page for a file has no script
either; its content security policy enforces that. A page from a server has a nonce, and follows the
theme of the page around it.
"""

import datetime as dt
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from sluice.language.names import Row

if TYPE_CHECKING:
    from jinja2 import Environment

Address = Callable[[Sequence[tuple[str, str]]], str]  # of a page, by names and values


class Element:
    """Anything that a page shows besides plain words and numbers."""


Content: TypeAlias = "str | int | Element | Sequence[Content] | None"


@dataclass(frozen=True)
class Text(Element):
    """Words with a look; a link if they have an address, which may lead `outside` of the visit."""

    words: Content
    look: str = ""
    href: str = ""
    title: str = ""


@dataclass(frozen=True)
class Action(Element):
    """A button of a server's page: it posts JSON to an address, then leads to the new run.

    `runs` is the address of runs in Airflow; a refusal is shown beside the button.
    """

    words: str
    title: str
    address: str
    body: str
    runs: str


@dataclass(frozen=True)
class Field:
    """A field of a form below its label, with its value; a hidden one is only sent.

    `choices`: the values that may be chosen; without them, any text.
    """

    name: str
    label: str
    value: str = ""
    about: str = ""
    is_hidden: bool = False
    choices: Sequence[str] = ()


@dataclass(frozen=True)
class Form(Element):
    """Fields of a server's page, whose values are sent to an address by a button."""

    address: str
    words: str
    fields: Sequence[Field]


@dataclass(frozen=True)
class Properties(Element):
    """Names and values, side by side."""

    pairs: Sequence[tuple[str, Content]]


@dataclass(frozen=True)
class Cards(Element):
    """Cards side by side, as many as there is space for."""

    cards: Sequence[Element]


@dataclass(frozen=True)
class Listing(Element):
    """Rows below columns of a name and a look; a narrow screen shows `stacked` rows as cards."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Content]]
    look: str = ""


@dataclass(frozen=True)
class Entry(Element):
    """One thing of a card: its title between a lead and marks, details below."""

    title: Content
    lead: Content = ""
    detail: Content = ""
    marks: Content = ""
    parts: Sequence[Content] = ()


@dataclass(frozen=True)
class Card(Element):
    """Entries below each other."""

    entries: Sequence[Entry]


@dataclass(frozen=True)
class Details(Element):
    """A part behind a line that opens it."""

    line: str
    part: Element
    is_open: bool


@dataclass(frozen=True)
class Box:
    """A rectangle of a picture, with its colour and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    look: str
    title: str


@dataclass(frozen=True)
class Picture(Element):
    """Boxes, or an SVG path with boxes as points on it; `below` are words of its scale."""

    label: str
    width: float
    height: float
    boxes: Sequence[Box]
    path: str = ""
    below: Sequence[str] = ()


@dataclass(frozen=True)
class Node:
    """A thing of a graph at its place; its look is that of a state. A link if it has an address.

    `columns`: lines below its words, each of which may be chosen.
    """

    id: str
    x: int
    y: int
    width: int
    height: int
    words: str
    below: str
    look: str
    title: str
    href: str
    columns: Sequence[str] = ()


@dataclass(frozen=True)
class Edge:
    """A line between two things or two of their columns, by their ids, as an SVG path."""

    path: str
    begin: str
    end: str


@dataclass(frozen=True)
class Graph(Element):
    """Things and the lines between them.

    A server's page moves and enlarges them. It marks all that leads to a thing, and from it, while
    the thing has the focus, or as long as one of its columns is chosen.
    """

    label: str
    width: int
    height: int
    nodes: Sequence[Node]
    edges: Sequence[Edge]


@dataclass(frozen=True)
class Bar:
    """A bar, numbered by `rank`; `share` is its length relative to the longest one."""

    rank: int
    label: Text
    value: str
    share: float | None


@dataclass(frozen=True)
class Bars(Element):
    """Bars below each other, the longest as wide as there is space for."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Chapter(Element):
    """Parts below a title."""

    title: Content
    parts: Sequence[Content]


@dataclass(frozen=True)
class Page(Element):
    """A whole page; `path` leads to it from the first one, `head` follows its heading."""

    title: str
    heading: Content
    head: Sequence[Content]
    sections: Sequence[Content]
    foot: Content
    path: Content = ""


def moment(at: dt.datetime) -> str:
    """Return a date if it says everything, else date and time, in UTC."""
    utc = at.astimezone(dt.UTC) if at.tzinfo else at
    return f"{utc:%Y-%m-%d}" if utc.time() == dt.time() else f"{utc:%Y-%m-%d %H:%M}"


def second(at: dt.datetime | None) -> str:
    """Return date and time to the second."""
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def ago(at: dt.datetime | None, now: dt.datetime) -> str:
    """Return the time before `now`, in the largest unit that says something."""
    if at is None:
        return "never"
    seconds = max((now - at).total_seconds(), 0)
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{pluralize(int(seconds // size), unit)} ago"
    return "just now"


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cell(value: Any) -> Content:
    """Return a value of a row."""
    match value:
        case None:
            return Text("null", "missing")
        case dt.datetime():
            return str((value.astimezone(dt.UTC) if value.tzinfo else value).replace(tzinfo=None))
        case bytes():
            return b64encode(value).decode()
        case bool() | dict() | list():
            return json.dumps(_spell(value), ensure_ascii=False, default=_text)
    return str(_spell(value))


def _spell(value: Any) -> Any:
    """Return a value with NaN, infinities and keys of maps as the texts that answers have."""
    match value:
        case float():
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), value)
        case dict():
            return {k if isinstance(k, str) else _text(k): _spell(v) for k, v in value.items()}
        case list() | tuple():
            return [_spell(one) for one in value]
    return value


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def data(rows: Iterable[Row], names: Sequence[str], suspects: Iterable[str] = ()) -> Listing:
    """Return rows as a table of these columns; a column that a row lacks is empty there."""
    columns = [(name, "mono suspect" if name in {*suspects} else "mono") for name in names]
    return Listing(columns, [[cell(row[n]) if n in row else "" for n in names] for row in rows])


def tile(number: int, counts: str, of: int | None = None) -> Card:
    """Return a number, of those that there are, with what it counts."""
    total = "" if of is None else Text(f" of {of:,}", "soft")
    return Card([Entry([Text(number, "big"), total], detail=counts)])


def html(page: Page, nonce: str = "") -> str:
    """Return a page as HTML; `nonce` is that of the policy that the page is sent with."""
    return _environment().get_template("page.html.j2").render(page=page, nonce=nonce)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("sluice.pages", "templates"),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["show"] = _show
    return made


def _show(content: Content) -> str:
    """Return an element as its macro writes it; words are escaped where they are written."""
    match content:
        case None:
            return "–"
        case int():
            return f"{content:,}"
        case str():
            return content
    macro = type(content).__name__.lower() if isinstance(content, Element) else "many"
    written: str = getattr(_environment().get_template("elements.html.j2").module, macro)(content)
    return written
