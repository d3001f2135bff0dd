"""The demo's views, computed by DuckDB from all files landed so far, as Parquet.

python -m tests.benchmarks.retail_again LANDING DAYS
"""

import sys
import tempfile
from pathlib import Path

import duckdb

VIEWS = {
    "invoices": """
        SELECT t.*, t.retail_disc + t.coupon_disc + t.coupon_match_disc AS discount,
            coalesce(p.department, 'UNKNOWN') AS department, p.product_category AS category,
            p.brand, d.income, d.household_size
        FROM transactions t LEFT JOIN products p USING (product_id)
            LEFT JOIN demographics d USING (household_id)""",
    "product_sales": """
        SELECT department, product_id, sum(sales_value) AS sales, sum(quantity) AS units,
            count(*) AS baskets
        FROM invoices GROUP BY ALL""",
    "top_products": """
        SELECT *, row_number() OVER (PARTITION BY department ORDER BY sales DESC, product_id) AS n
        FROM product_sales QUALIFY n <= 10""",
    "product_sales_weekly": """
        SELECT department, product_id, sum(sales_value) AS sales, sum(quantity) AS units,
            time_bucket(INTERVAL 7 DAYS, transaction_timestamp, TIMESTAMP '1970-01-01') AS week
        FROM invoices GROUP BY ALL""",
    "top_products_weekly": """
        SELECT *, row_number() OVER (
            PARTITION BY week, department ORDER BY sales DESC, product_id) AS n
        FROM product_sales_weekly QUALIFY n <= 10""",
    "households": """
        SELECT * FROM (
            SELECT household_id, sum(sales_value) AS spent, sum(quantity) AS items,
                count(DISTINCT basket_id) AS baskets, max(transaction_timestamp) AS last_purchase
            FROM transactions GROUP BY 1
        ) FULL JOIN (
            SELECT household_id, count(*) AS coupons, max(redemption_date) AS last_redemption
            FROM coupon_redemptions GROUP BY 1
        ) USING (household_id) FULL JOIN (
            SELECT household_id, list(campaign_id ORDER BY start_date, campaign_id) AS campaigns
            FROM campaign_memberships GROUP BY 1
        ) USING (household_id)""",
    "basket_totals": """
        SELECT household_id, basket_id, sum(sales_value) AS total, count(*) AS lines,
            min(transaction_timestamp) AS "at"
        FROM transactions GROUP BY ALL""",
    "baskets": 'SELECT * FROM basket_totals ORDER BY household_id, "at" DESC',
    "redeemed_baskets": """
        SELECT c.household_id, c.coupon_upc, c.campaign_id, b.basket_id, b."at", b.total
        FROM coupon_redemptions c JOIN basket_totals b
            ON c.household_id = b.household_id AND c.redemption_date = CAST(b."at" AS DATE)""",
    "campaign_events": """
        SELECT 'coupon_redemptions' AS event, household_id, campaign_id, redemption_date AS on_day
        FROM coupon_redemptions UNION ALL
        SELECT 'campaign_memberships', household_id, campaign_id, start_date
        FROM campaign_memberships WHERE start_date IS NOT NULL""",
    "basket_steps": """
        SELECT household_id, basket_id, "at", total, lag(basket_id) OVER w AS previous_basket,
            date_diff('day', lag("at") OVER w, "at") AS days_since,
            total - lag(total) OVER w AS change
        FROM basket_totals
        WINDOW w AS (PARTITION BY household_id ORDER BY "at", basket_id)""",
}
MEMBERSHIPS = (
    "{campaign_id: 'INT', campaign_type: 'VARCHAR', household_id: 'BIGINT', start_date: 'DATE'}"
)


def main(landing: Path, days: int) -> None:
    """Read the first so many days and write every view."""
    connection = duckdb.connect()
    for source, reading in (
        ("transactions", "read_parquet(%s)"),
        ("coupon_redemptions", "read_csv(%s, header = true)"),
        ("campaign_memberships", f"read_json(%s, columns = {MEMBERSHIPS})"),
    ):
        folders = sorted((landing / source).iterdir())[:days]
        files = [str(file) for folder in folders for file in folder.iterdir()]
        connection.execute(f"CREATE TABLE {source} AS SELECT * FROM {reading % files}")
    for name in ("products", "demographics"):
        connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{landing}/{name}/*')")
    with tempfile.TemporaryDirectory() as folder:
        for name, query in VIEWS.items():
            connection.execute(f"CREATE TABLE {name} AS {query}")
            connection.execute(f"COPY {name} TO '{folder}/{name}.parquet'")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
