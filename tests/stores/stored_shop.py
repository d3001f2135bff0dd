"""The shop of the crash tests with its lake and its landing folder in a store."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSelector, FileType
from tests.cli import trips
from tests.cli.trips import Ended
from tests.crash.shop import Shop
from tests.support.lake import frozen
from tests.support.stores import Store

from sluice.declare.project import Project, load
from sluice.delta.places.delta_rs import locate
from sluice.delta.places.lake_layout import layout
from sluice.limits import Limits


class StoredShop(Shop):
    """The shop of the crash tests with its lake and its landing folder in a bucket."""

    def __init__(self, folder: Path, store: Store, bucket: str):
        super().__init__(folder, f"{store.uri(bucket)}/")
        self.store, self.bucket = store, bucket
        self.limits = Limits()
        self.remote = ""

    @property
    def project(self) -> Project:
        return load(self.config).model_copy(update={"limits": self.limits})

    @classmethod
    def begin(cls, folder: Path, store: Store, bucket: str = "") -> "StoredShop":
        shop = cls(folder, store, bucket or store.place())
        shop.define(cls.pipeline)
        shop.committer("auto")
        return shop

    def sluice(self, *words: str, **variables: str) -> Ended:
        """A command, with these variables, in a process of its own; its Spark is at `remote`."""
        return trips.Project(self.folder, self.remote).sluice(*words, **variables)


RUN = ("run", "shop", "--start", "2024-01-01", "--end", "2024-01-02")


def objects(shop: StoredShop) -> set[str]:
    files, path = locate(layout(shop.project).root)
    found = files.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return {f.path for f in found if f.type == FileType.File}


HIDDEN = "_sluice"


TABLES = ("sales", "totals", "best")


def shown(rows: Iterable[dict[str, Any]]) -> Counter[Any]:
    """Rows without the columns that are Sluice's own."""
    visible = ({c: v for c, v in row.items() if not c.startswith(HIDDEN)} for row in rows)
    return Counter(frozen(row) for row in visible)
