"""The tests' Spark in a store: what other processes' Sparks take from their environment."""

from typing import TYPE_CHECKING

from tests.support.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reach(session: "SparkSession", store: Store, endpoint: str) -> None:
    """Let it use the store, as its owner, at an endpoint: the store's or a proxy's."""
    settings = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": store.key[0],
        "secret.key": store.key[1],
    }
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    for name, value in settings.items():
        hadoop.set(f"fs.s3a.{name}", value)
