"""A till whose sales come by a topic; one scheduled run is due, that of the first of March."""

TILL = """
pipeline: till
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-03-02
catchup: true
airflow: {retries: 1, retry_delay: 1 second}
sources:
  sold:
    kafka: {topic: shop.till, connection: till_kafka, max_rows: 2}
    value: {format: json}
    schema: id INT, paid INT
    key: [id]
    expect:
      - {type: expect_column_values_to_be_between, column: paid, min_value: 0, max_value: 10,
         on_failure: quarantine}
views:
  best: {kind: topk, from: sold, order_by: [paid desc], limit: 2}
"""
