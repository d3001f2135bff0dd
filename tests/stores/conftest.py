"""One store for all tests of this folder, a proxy before it, and a lake in a bucket of its own.

Nothing here starts a JVM: batches are small, and computed in their own process.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.shop import CORRECTED, FIRST, day
from tests.stores.stored_shop import StoredShop
from tests.support import proxy
from tests.support.proxy import Proxy
from tests.support.servers import SERVERS
from tests.support.stores import Store, using

from sluice.declare import filesystems
from sluice.delta.places import delta_rs
from sluice.engine import retries
from sluice.language.interval import Interval


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
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A request is tried twice, a batch at once: more tries would not be answered either."""
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    monkeypatch.setattr(filesystems, "ATTEMPTS", 2)
    monkeypatch.setitem(delta_rs.RETRIES, "max_retries", "1")
    filesystems._s3.cache_clear()
    yield
    filesystems._s3.cache_clear()


@pytest.fixture
def first_day() -> Interval:
    return day(1)
