"""One Spark, one Airflow and one store for the tests of the quick tier that need the real thing."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.support.engines import running_spark
from tests.support.stores import Store, running


@pytest.fixture(scope="module")
def whole_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark for one module: beside it, commands of other tests need processes of their own."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def whole_store() -> Iterator[Store]:
    """SeaweedFS, which a Python package brings."""
    with running() as store:
        yield store
