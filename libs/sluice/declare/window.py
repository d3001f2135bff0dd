"""Event time windows."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from sluice.language.interval import Duration, zone
from sluice.language.model import Model

START, END = "window_start", "window_end"
WINDOW = {START: "TIMESTAMP", END: "TIMESTAMP"}  # columns, with their types
NEEDS = {"tumbling": ("size",), "hopping": ("size", "advance"), "session": ("gap",)}


class Window(Model):
    """Event time cut into windows, aligned to the epoch in the window's zone."""

    type: Literal["tumbling", "hopping", "session"]
    time: str
    size: Duration | None = None
    advance: Duration | None = None
    gap: Duration | None = None
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        return zone(name).key

    @model_validator(mode="after")
    def _has_its_lengths(self) -> Self:
        given = {name for name in ("size", "advance", "gap") if getattr(self, name)}
        needed = set(NEEDS[self.type])
        if given != needed:
            raise ValueError(
                f"a {self.type} window takes {_and(needed)}, not {_and(given) or 'none'}"
            )
        if self.advance and self.size and self.advance.may_exceed(self.size):
            raise ValueError("`advance` is longer than `size`: rows between windows would be lost")
        if self.type == "session" and "timezone" in self.model_fields_set:
            raise ValueError("a session begins with its first row: `timezone` would have no effect")
        return self


def _and(names: set[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(names, reverse=True))
