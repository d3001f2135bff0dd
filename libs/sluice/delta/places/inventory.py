"""Tables that lie in a lake, whether or not a declaration names them. Reads only listings."""

from collections.abc import Iterator

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from sluice.declare.project import Project
from sluice.delta.places.lake import LakeLayout, exists, layout
from sluice.delta.places.stores import located
from sluice.language.internal import declared

HIDDEN = ("_", ".")  # what begins so is no pipeline


def undeclared(project: Project) -> list[str]:
    """Return the tables in the project's lake that none of its declarations names, by id."""
    found = {declared(table_id) for table_id in stored(layout(project))}
    return sorted(found - project.graph.tables.keys())


def stored(lake: LakeLayout) -> Iterator[str]:
    """Yield every Delta table of the lake, internal ones too, as `pipeline.table`."""
    filesystem, root = located(lake.root)
    for pipeline in _folders(filesystem, root):
        for table in _folders(filesystem, pipeline.path):
            if exists(f"{lake.root}/{pipeline.base_name}/{table.base_name}"):
                yield f"{pipeline.base_name}.{table.base_name}"


def folders_of(lake: LakeLayout, table_id: str) -> list[str]:
    """Return the names of the folders of a table and of all that is kept beside it."""
    filesystem, path = located(lake.uri(table_id))
    pipeline, _, table = path.rpartition("/")
    names = (folder.base_name for folder in _folders(filesystem, pipeline))
    return sorted(name for name in names if declared(name) == table)


def _folders(filesystem: FileSystem, path: str) -> list[FileInfo]:
    listed = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    return [
        f for f in listed if f.type == FileType.Directory and not f.base_name.startswith(HIDDEN)
    ]
