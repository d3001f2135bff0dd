"""Content of a page, in values that know no HTML.

The macro of the same name in `elements.html.j2` writes each part. A `look` is some classes of the
stylesheet. Those of words are `soft`, `small`, `number`, `line` (a line by itself) and so on. Those
of states, such as `passed` and `stopped`, are shown by a `chip` in a word and explained by a `key`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
