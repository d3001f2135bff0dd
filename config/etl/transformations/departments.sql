CREATE MATERIALIZED VIEW departments AS
SELECT department, count(*) AS products, sum(sales) AS sales
FROM product_sales
GROUP BY department;

CREATE MATERIALIZED VIEW best_products AS
SELECT * FROM (
  SELECT department, product_id, sales,
    row_number() OVER (PARTITION BY department ORDER BY sales DESC, product_id) AS rank
  FROM product_sales
)
WHERE rank <= 10;
