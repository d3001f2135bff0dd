"""Incremental views on Delta Lake, kept equal to their queries batch by batch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.operate.why import Why
    from sluice.operate.why_not import WhyNot
    from sluice.read.lake import Lake
    from sluice.serve.client import Remote

__all__ = ["connect", "open"]


def open(config: "Path | str" = "config") -> "Lake":  # noqa: A001
    """Open the lake that a configuration folder declares, read without Spark.

    >>> lake = sluice.open("config")
    >>> lake.table("households").get(7)
    """
    from sluice.read.lake import open_lake

    return open_lake(config, verbs={"why": _why, "why_not": _why_not})


def connect(url: str, token: str | None = None) -> "Remote":
    """Open a lake behind `sluice serve`; it is read like one that is opened here.

    `token`: by default that of the variable SLUICE_TOKEN.

    >>> lake = sluice.connect("http://localhost:8090")
    >>> lake.table("households").get(7)
    """
    from sluice.serve.client import Remote

    return Remote(url.rstrip("/")) if token is None else Remote(url.rstrip("/"), token)


def _why(lake: "Lake", name: str, /, *key: Any, **named: Any) -> "Why | None":
    from sluice.operate.why import why

    return why(lake, name, *key, **named)


def _why_not(lake: "Lake", name: str, /, *key: Any, **named: Any) -> "WhyNot | None":
    from sluice.operate.why_not import why_not

    return why_not(lake, name, *key, **named)
