"""Module of a kind that has its own commands."""

from collections.abc import Sequence
from typing import Protocol

import click


class Commands(Protocol):
    """Module `commands`. Listing commands imports it, so commands import their work when run."""

    COMMANDS: Sequence[click.Command]
