"""Commands that a kind adds."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import click


@runtime_checkable
class Commands(Protocol):
    """Kind with commands. Listing them imports them, so they import their work when run."""

    def commands(self) -> Sequence[click.Command]:
        """Return the commands that read its tables."""
        ...
