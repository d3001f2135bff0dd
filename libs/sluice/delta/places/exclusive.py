"""Test that a store lets only one of several commits of a version win, as Delta requires.

Not every server that speaks S3 respects `If-None-Match`. With others, commits would silently
overwrite each other. So before the first commit to a lake RIVALS commits of one version race. A
note in the lake saves later processes the race.
"""

import hashlib
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Barrier

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

from sluice.declare.stores import store_of
from sluice.delta.places.delta_rs import endpoint_of, open_table, options
from sluice.delta.places.folders import SmallFiles, remove
from sluice.errors import StoreRefused
from sluice.language.names import STORE

RIVALS = 32
NOTE = "exclusive"
_ONCE = CommitProperties(max_commit_retries=0)


def check_exclusive(table_uri: str) -> None:
    """Raise StoreRefused if the store of a table would let two commits of a version win.

    Costs a race at the first commit to a lake, then one small file in a process.
    """
    if options(table_uri) is not None:
        lake = table_uri.rstrip("/").rsplit("/", 2)[0].partition("/__")[0]
        _check_lake(lake, endpoint_of(lake))


@lru_cache(maxsize=64)
def _check_lake(lake: str, endpoint: str) -> None:
    notes = SmallFiles(f"{lake}/{STORE}")
    # The mark differs in another store, and in a copy of the lake.
    mark = hashlib.sha256(f"{lake}\n{endpoint}".encode()).hexdigest().encode()
    if notes.read(NOTE) == mark:
        return
    if (count := winners(f"{lake}/{STORE}/{uuid.uuid4().hex}")) != 1:
        kind = store_of(lake)
        assert kind, "a lake in an unknown store is refused when the project is loaded"
        raise StoreRefused(
            f"the store of {lake} let {count} of {RIVALS} commits of one version win: tables would "
            "lose rows",
            hint=f"use a store, or a release of it, that lets one of several win: {kind.exclusive}",
        )
    notes.write(NOTE, mark)


def winners(uri: str) -> int:
    """Return how many of RIVALS commits of one version win, in a table made for it."""
    column = Field("n", PrimitiveType("long"))
    DeltaTable.create(uri, Schema([column]), storage_options=options(uri))
    rivals, ready = [open_table(uri) for _ in range(RIVALS)], Barrier(RIVALS)

    def commit(rival: DeltaTable) -> bool:
        ready.wait()
        try:
            rival.create_write_transaction([], "append", rival.schema(), commit_properties=_ONCE)
        except CommitFailedError:
            return False
        return True

    try:
        with ThreadPoolExecutor(RIVALS) as threads:
            return sum(threads.map(commit, rivals))
    finally:
        remove(uri)
