"""Temporary folders of a lake, which are removed whole."""

from pyarrow.fs import FileSystem, FileType, LocalFileSystem


def remove(uri: str) -> None:
    """Remove everything at `uri`; do nothing if nothing is there."""
    filesystem, path = FileSystem.from_uri(uri) if "://" in uri else (LocalFileSystem(), uri)
    if filesystem.get_file_info(path).type != FileType.NotFound:
        filesystem.delete_dir(path)
