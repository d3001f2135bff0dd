"""A view that is declared otherwise."""

PIPELINE = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-03
sources:
  flights:
    path: "landing/flights/{interval_start:%Y-%m-%d}/"
    format: json
    schema: carrier STRING, delay INT
  weather:
    path: "landing/weather/{interval_start:%Y-%m-%d}/"
    format: json
    schema: station INT, wind INT
    key: [station]
views:
  delays: {kind: cogroup, key: [carrier], streams: {f: {from: flights, aggregates: {n: count(*)}}}}
  late: {kind: select, from: flights, where: delay > 3, select: {carrier: carrier, delay: delay}}
  worst: {kind: topk, from: late, order_by: [delay desc], limit: 1}
  gusts: {kind: cogroup, key: [station], streams: {w: {from: weather, aggregates: {n: count(*)}}}}
"""
CHANGED = (
    PIPELINE.replace("carrier STRING, delay INT", "carrier STRING, delay INT, air_time INT")
    .replace("limit: 1", "limit: 2")
    .replace("{n: count(*)}}}}\n  late", "{n: count(*), sum: sum(air_time)}}}}\n  late")
)
FLIGHTS = [
    {"carrier": "UA", "delay": 2, "air_time": 70},
    {"carrier": "AA", "delay": 5, "air_time": 80},
    {"carrier": "AA", "delay": 9},
]
