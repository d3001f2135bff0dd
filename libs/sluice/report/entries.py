"""Parts that several pages show of a table: its last failure, its columns."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

from pyarrow.fs import LocalFileSystem

from sluice.delta.notes.failures import Failure
from sluice.delta.places.small_files import replace_file
from sluice.pages.elements import Card, Chapter, Content, Entry, Listing, Text
from sluice.pages.wording import ago, second

FAILED = Text("Failed, and not fixed since", "wrong")


def chapter(title: Content, said: Iterable[Content]) -> list[Chapter]:
    """Return a chapter with one card of entries; nothing if there are none."""
    entries = [one if isinstance(one, Entry) else Entry(one) for one in said]
    return [Chapter(title, [Card(entries)])] if entries else []


def failure(kept: Failure, now: dt.datetime | None = None, lead: Content = "") -> Entry:
    """Return a failure, with its age if the page is of now."""
    when = f"{second(kept.at)} ({ago(kept.at, now)})" if now else second(kept.at)
    run = f", in {kept.run}" if kept.run else ""
    detail: Content = [f"{when}, exit code {kept.exit_code}{run}", Text(kept.hint, "line")]
    return Entry(kept.reason, lead, detail)


def columns(typed: Iterable[tuple[str, str]], key: Iterable[str] = ()) -> Chapter:
    """Return the names and types of columns; those of the key are marked."""
    marked, mark = {*key}, Text(" key", "soft small")
    rows: list[list[Content]] = [
        [[Text(n, "mono"), mark if n in marked else ""], type_] for n, type_ in typed
    ]
    return Chapter("Columns", [Listing([("Column", ""), ("Type", "mono soft")], rows)])


def replace_page(path: Path, text: str) -> None:
    """Put a page in place of an earlier one, which readers meet until then."""
    path.parent.mkdir(exist_ok=True)
    half = "backslashreplace"  # half of a surrogate pair, which JSON may hold
    replace_file(LocalFileSystem(), str(path.absolute()), text.encode(errors=half))
