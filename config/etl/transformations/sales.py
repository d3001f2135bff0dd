"""Shopping as it arrives, and what was sold of each product."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
LINES = """
    household_id BIGINT, basket_id BIGINT, product_id BIGINT, quantity BIGINT,
    sales_value DECIMAL(12,2), transaction_timestamp TIMESTAMP
"""


@dp.table(comment="One line per product in a basket")
def transactions() -> DataFrame:
    """Read the files of each day once."""
    return spark.readStream.schema(LINES).parquet("../../landing/transactions")


@dp.table
def products() -> DataFrame:
    """Read the products that may be in a basket."""
    columns = "product_id BIGINT, department STRING, brand STRING"
    return spark.readStream.schema(columns).parquet("../../landing/products")


@dp.materialized_view
def product_sales() -> DataFrame:
    """Sum up the lines of each product."""
    lines = spark.read.table("transactions").filter("quantity > 0")
    sold = lines.join(spark.read.table("products"), "product_id").groupBy(
        "department", "product_id"
    )
    return sold.agg(F.sum("sales_value").alias("sales"), F.count("*").alias("lines"))
