"""Tables that lie in a lake, whether or not a declaration names them. Reads only listings."""

from collections.abc import Iterator

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

from sluice.declare.project import Project
from sluice.delta.places.lake import LakeLayout, exists, layout
from sluice.language.internal import declared

HIDDEN = ("_", ".")  # what begins so is no pipeline


def undeclared(project: Project) -> list[str]:
    """Return the tables in the project's lake that none of its declarations names, by id."""
    found = {declared(table_id) for table_id in _tables(layout(project))}
    return sorted(found - project.graph.tables.keys())


def _tables(lake: LakeLayout) -> Iterator[str]:
    """Yield every Delta table of the lake, as `pipeline.table`."""
    at = lake.root
    filesystem, root = FileSystem.from_uri(at) if "://" in at else (LocalFileSystem(), at)
    for pipeline in _folders(filesystem, root):
        for table in _folders(filesystem, pipeline.path):
            if exists(f"{at}/{pipeline.base_name}/{table.base_name}"):
                yield f"{pipeline.base_name}.{table.base_name}"


def _folders(filesystem: FileSystem, path: str) -> list[FileInfo]:
    listed = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    return [
        f for f in listed if f.type == FileType.Directory and not f.base_name.startswith(HIDDEN)
    ]
