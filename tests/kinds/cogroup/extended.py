"""A cogroup that is given further streams and aggregates."""

SOURCES = """
sources:
  sales: {path: "s/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, g STRING, v INT"}
  clicks: {path: "c/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, g STRING, n INT"}
"""
SOLD = "sold: {from: sales, aggregates: {n: count(*), v: sum(v)}}"
SALES = [{"id": i, "g": "ab"[i % 2], "v": i} for i in range(4)]


def view(*streams: str, more: str = "") -> str:
    listed = ", ".join(streams)
    return f"{SOURCES}views:\n  found: {{kind: cogroup, key: [g]{more}, streams: {{{listed}}}}}\n"
