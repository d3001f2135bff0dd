"""A check that Spark's commits to a store exclude those of other processes.

On S3, Spark makes the same conditional request as delta-rs if it is configured for that. A Connect
server that Sluice did not start may not be.
"""

from weakref import WeakSet

from pyspark.sql import SparkSession

from sluice.declare.stores import Store, store_of
from sluice.errors import UsageError
from sluice.interpreter.presence import is_here

_checked: "WeakSet[SparkSession]" = WeakSet()


def check_spark_may_commit(session: SparkSession, table_uri: str) -> None:
    """Raise UsageError if Spark's commits to a table would not exclude other processes'."""
    store = store_of(table_uri)
    if store and not store.takes_spark:
        raise UsageError(
            f"Spark must not commit to {table_uri}: {store.why_not_spark}",
            hint="nothing was committed; this is a defect of Sluice, which commits by delta-rs",
        )
    if not store or not store.conf or session in _checked or is_here(session):
        return  # what runs here leaves such a commit to Spark
    if faults := _unset(session, store):
        raise UsageError(
            f"Spark must not commit to {table_uri}: {'; '.join(faults)}",
            hint="nothing was committed; set its server up for S3, or write `commit: delta-rs` "
            "under `spark:`",
        )
    _checked.add(session)


def _unset(session: SparkSession, store: Store) -> list[str]:
    has = {name: session.conf.get(name, "") or "not set" for name in store.conf}
    return [f"{n} is {has[n]}, not {value}" for n, value in store.conf.items() if has[n] != value]
