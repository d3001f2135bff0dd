"""A cogroup whose aggregates fail."""

SALES = """
sources:
  sales:
    path: "s/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, f FLOAT, d DOUBLE, l BIGINT, m DECIMAL(38,0), w STRING, at TIMESTAMP"
views:
"""
VIEW = (
    "  {}: {{kind: cogroup, key: [g], streams: {{s: {{from: sales, aggregates: {{x: '{}'}}}}}}}}\n"
)
