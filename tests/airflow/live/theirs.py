"""Other writers' Delta tables: one whose owner announces news, two that a daily run follows."""

HEARD = """
pipeline: heard
schedule: assets
sources:
  calls: {delta: {path: theirs/calls}, schema: "id BIGINT", key: [id]}
"""
CRM = """
pipeline: crm
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-03-02
catchup: true
airflow: {retries: 0}
sources:
  orders:
    delta: {path: theirs/orders}
    schema: id BIGINT, paid BIGINT
    key: [id]
dimensions:
  names: {path: theirs/names, format: delta, schema: "id BIGINT, name STRING", key: [id]}
views:
  best: {kind: topk, from: orders, order_by: [paid desc], limit: 2}
"""
