"""HTML of the page: self-contained templates, light or dark as Airflow is."""

import datetime as dt
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    FunctionLoader,
    PackageLoader,
    StrictUndefined,
)

from sluice.declare.registry import kind

OWN = PackageLoader("sluice.airflow.page", "templates")


def render(template: str, **shown: Any) -> str:
    """Return the HTML of that page."""
    now = dt.datetime.now(dt.UTC)
    return _environment().get_template(f"{template}.html.j2").render(now=now, **shown)


def ago(moment: dt.datetime | None, now: dt.datetime) -> str:
    """Return the time before `now`, in the largest unit that says something."""
    if moment is None:
        return "never"
    seconds = max((now - moment).total_seconds(), 0)
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([OWN, FunctionLoader(_of_kind)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ago": ago, "count": _count, "moment": _moment, "cell": _cell}
    return environment


def _of_kind(template: str) -> str | None:
    """Return the template that a kind brings: `kind/template`."""
    name, _, file = template.partition("/")
    return files(kind(name).package).joinpath(file).read_text("utf-8") if file else None


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _moment(moment: dt.datetime | None) -> str:
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def _cell(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return _moment(value)
    return "–" if value is None else str(value)
