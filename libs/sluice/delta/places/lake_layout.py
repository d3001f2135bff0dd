"""The place of tables: `<lake>/<pipeline>/<table>`, internal ones beside them as `<table>__x`."""

from dataclasses import dataclass
from pathlib import Path

from sluice.declare.project import Project
from sluice.delta.places.lake_format import check_format
from sluice.language.names import QUALITY, declared_id, internal


@dataclass(frozen=True)
class LakeLayout:
    """The folders of one lake. `root` is a local path or an object-store URI."""

    root: str

    def uri(self, table_id: str, suffix: str = "") -> str:
        """Return the URI of `pipeline.table`, or of its internal table `__suffix`."""
        pipeline, table = table_id.split(".", 1)
        return f"{self.root}/{pipeline}/{internal(table, suffix) if suffix else table}"

    @property
    def quality_uri(self) -> str:
        """Folder of quality results and reports."""
        return f"{self.root}/{QUALITY}"

    @property
    def counts_uri(self) -> str:
        """Folder of what was counted in each batch."""
        return f"{self.quality_uri}/facts"


def layout(project: Project) -> LakeLayout:
    """Return the layout of the project's lake; a relative root starts at the project's folder.

    Raises NewerLake if a newer release has written the lake in another format.
    """
    if "://" in project.lake:
        root = project.lake.rstrip("/")
    else:
        root = str((Path(project.root) / project.lake).resolve())
    check_format(root)
    return LakeLayout(root)


def table_at(uri: str) -> str:
    """Return the id of the declared table to which the table at a URI belongs."""
    pipeline, table = uri.rstrip("/").split("/")[-2:]
    return f"{pipeline}.{declared_id(table)}"


def moved_away(uri: str) -> str:
    """Return the repair for a table that can't be fixed in place."""
    return f"restore {uri} from a backup, or move it away and run `sluice rebuild {table_at(uri)}`"
