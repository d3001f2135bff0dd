"""One store for all tests of this folder, a proxy before it, and a lake in a bucket of its own.

Nothing here starts a JVM: batches are small, and computed in their own process.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import trips
from tests.cli.trips import Ended
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.support import proxy
from tests.support.proxy import Proxy
from tests.support.servers import SERVERS
from tests.support.stores import Store, using

from sluice.declare.project import Project, load
from sluice.language.interval import Interval
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


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with SERVERS[request.config.getoption("store")]() as found:
        yield found


@pytest.fixture(scope="session")
def proxied(store: Store) -> Iterator[Proxy]:
    with proxy.running(store.endpoint) as found:
        yield found


@pytest.fixture(autouse=True)
def credentials(store: Store) -> Iterator[None]:
    """This process, and those that it starts, use the store as its owner."""
    with using(store.environ()):
        yield


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> StoredShop:
    """An empty lake, and the files of a day."""
    shop = StoredShop.begin(tmp_path / "shop", store)
    shop.land(1, *FIRST)
    return shop


@pytest.fixture(scope="session")
def delivered(store: Store, tmp_path_factory: pytest.TempPathFactory) -> StoredShop:
    """A lake into which a day was delivered; the tests have copies of it."""
    with using(store.environ()):
        shop = StoredShop.begin(tmp_path_factory.mktemp("delivered") / "shop", store)
        shop.land(1, *FIRST)
        shop.run(day(1))
        return shop


@pytest.fixture
def corrected(delivered: StoredShop, store: Store, tmp_path: Path) -> StoredShop:
    """A day was delivered and everything is up to date; then that day was corrected."""
    shop = StoredShop.begin(tmp_path / "shop", store)
    for name in store.names(delivered.bucket):
        store.files.copy_file(f"{delivered.bucket}/{name}", f"{shop.bucket}/{name}")
    shop.land(1, *CORRECTED)
    return shop


@pytest.fixture
def first_day() -> Interval:
    return day(1)
