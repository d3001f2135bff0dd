"""Packages that only some work needs, and Sluice's extras that install them."""

from collections.abc import Mapping
from importlib.util import find_spec

from sluice.errors import MissingDependency

DISTRIBUTION = "sluice-views"  # the name to install; the package and the command are `sluice`

# The module to look for: of Spark, py4j, because the client for small batches has `pyspark`, too.
MODULES: Mapping[str, tuple[str, str]] = {
    "spark": ("py4j", "Spark"),
    "quality": ("great_expectations", "Great Expectations"),
    "airflow": ("airflow", "Airflow"),
    "dbt": ("dbt_artifacts_parser", "dbt-artifacts-parser"),
    "kafka": ("confluent_kafka", "Kafka's client"),
    "lineage": ("openlineage", "OpenLineage's client"),
    "serve": ("uvicorn", "a web server"),
    "stores": ("obstore", "obstore"),
}


def is_installed(extra: str) -> bool:
    """True if the packages of an extra are installed."""
    return find_spec(MODULES[extra][0]) is not None


def require(extra: str, work: str, instead: str = "") -> None:
    """Raise MissingDependency, with what to install, unless the extra is installed.

    `work`: the work that needs it, as the subject of a sentence. `instead`: an alternative.
    """
    if not is_installed(extra):
        raise MissingDependency(
            f"{work} needs {MODULES[extra][1]}, which is not installed",
            hint=f"{instead}run: pip install '{DISTRIBUTION}[{extra}]'",
        )
