"""An empty lake for a demo, which removes only what an earlier demo created."""

import shutil
from pathlib import Path

from sluice.declare.project import Project
from sluice.delta.places.lake_layout import layout
from sluice.errors import SluiceError

MADE = ".made-by-a-demo"


class NotOurs(SluiceError):
    """A lake that contains something that no demo created."""


def make_room(project: Project) -> None:
    """Return the project's lake, emptied."""
    lake = Path(layout(project).root)
    if lake.exists() and any(lake.iterdir()) and not (lake / MADE).exists():
        raise NotOurs(
            f"{lake} holds tables that no demo made",
            hint="move them, or name another lake for the demo, as in: SLUICE_LAKE=demo make demo",
        )
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    (lake / MADE).touch()
