"""The module of a kind that has commands of its own."""

from collections.abc import Sequence
from typing import Protocol

import click


class Commands(Protocol):
    """A module `commands`. It is imported to list commands: what they do is imported by them."""

    COMMANDS: Sequence[click.Command]
