"""A spark-pipelines project whose DAG has a daily schedule; one run is due, of the first of March.

It lies beside the folder of the configuration, which names its spec.
"""

from pathlib import Path

SPEC = """
name: etl
storage: file:///nowhere
libraries:
  - glob: {include: transformations/**}
"""
BESIDE = """
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-03-02
catchup: true
airflow: {retries: 0}
expect:
  sold:
    - {type: expect_column_values_to_be_between, column: paid, min_value: 0, on_failure: quarantine}
"""
PYTHON = """
from pyspark import pipelines as dp

@dp.table
def sold():
    return spark.readStream.schema("id BIGINT, who STRING, paid BIGINT").json("../landing/sold")

@dp.materialized_view
def payers():
    return spark.read.table("sold").groupBy("who").agg({"paid": "sum"}).toDF("who", "paid")
"""
SQL = "CREATE MATERIALIZED VIEW best AS SELECT who, paid FROM payers ORDER BY paid DESC LIMIT 1;"


def write(folder: Path) -> None:
    """Write the project, and its name into the configuration."""
    files = folder / "etl/transformations"
    files.mkdir(parents=True)
    (folder / "etl/spark-pipeline.yml").write_text(SPEC)
    (folder / "etl/sluice.yml").write_text(BESIDE)
    (files / "sold.py").write_text(PYTHON)
    (files / "best.sql").write_text(SQL)
    with (folder / "config/sluice.yaml").open("a") as settings:
        settings.write("\nspark_pipelines: [../etl/spark-pipeline.yml]\n")
