"""Folders of a lake that are scaffolding: made for a while, then taken away whole."""

from pyarrow.fs import FileSystem, FileType, LocalFileSystem


def remove(uri: str) -> None:
    """Take away everything at `uri`; nothing happens if nothing is there."""
    filesystem, path = FileSystem.from_uri(uri) if "://" in uri else (LocalFileSystem(), uri)
    if filesystem.get_file_info(path).type != FileType.NotFound:
        filesystem.delete_dir(path)
