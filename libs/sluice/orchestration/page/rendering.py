"""The page's HTML: templates that need nothing from elsewhere, light or dark as Airflow is."""

import datetime as dt
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sluice.quality.report import ago


def render(template: str, **shown: Any) -> str:
    """The HTML of that page."""
    now = dt.datetime.now(dt.UTC)
    return _environment().get_template(f"{template}.html.j2").render(now=now, **shown)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sluice.orchestration.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ago": ago, "count": _count, "moment": _moment, "cell": _cell}
    return environment


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _moment(moment: dt.datetime | None) -> str:
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def _cell(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return _moment(value)
    return "–" if value is None else str(value)
