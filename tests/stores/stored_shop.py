"""The shop of the crash tests with its lake and its landing folder in a store."""

from pathlib import Path

from tests.cli import trips
from tests.cli.trips import Ended
from tests.crash.shop import Shop
from tests.support.stores import Store

from sluice.declare.project import Project, load
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
