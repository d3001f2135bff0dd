# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in sources, and the line that each gets."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, each

SOURCE = 'pipeline: p\nschedule: "@daily"\nstart_date: 2017-01-01\nsources:\n  x: '


@each(
    "source, told",
    """
{path: x/, schema: "id INT"}
  sources.x: … {interval_start:%Y-%m-%d} … path … time
{path: "x/{interval_strt:%Y}", schema: "id INT"}
  sources.x.path: … interval_strt … interval_start, interval_end
{path: "x/{interval_start}", schema: "id INT"}
  sources.x.path: … {interval_start} … {interval_start:%Y-%m-%d}
{path: "x/{interval_start:%Q}", schema: "id INT"}
  sources.x.path: … {interval_start:%Q}
{path: "x/{interval_start:%Y}", delivery: stream, schema: "id INT"}
  sources.x: … path … {interval_start}
{delivery: stream, schema: "id INT"}
  sources.x: … path
{path: x/, time: id, schema: "id INT"}
  sources.x.time: … INT … TIMESTAMP … DATE
{path: x/, delivery: stream, schema: "id INT", key: [idd]}
  sources.x.key: … idd … id
{path: x/, delivery: stream, schema: "id INT", sequence: [id]}
  sources.x: … sequence … key
{path: x/, delivery: stream, schema: "id INT", on_conflict: fail}
  sources.x: … on_conflict … key
{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: {column: op, insert: [c]}, on_conflict: fail}
  sources.x: … on_conflict
{path: x/, delivery: stream, schema: "id INT", key: [id], on_conflict: first}
  sources.x.on_conflict: … first … last, quarantine, fail
{path: x/, delivery: stream, schema: "id INTT"}
  sources.x.schema: … INTT … TINYINT, SMALLINT, INT
{path: x/, delivery: stream, schema: "id INT, v ARRAY<VARIANT>", key: [id]}
  sources.x.schema: … ARRAY<VARIANT> … STRING … JSON … get_json_object … $.part
{path: x/, delivery: stream, schema: "id INT", names: {ix: ID}}
  sources.x.names.ix: … ix … id
{path: x/, delivery: stream, schema: "a INT, b INT", names: {a: X Y, b: x y}}
  sources.x.names.b: … x y
{path: x/, delivery: stream, schema: "a INT, b INT", names: {a: B}}
  sources.x.names.a: … B
{path: x/, delivery: stream, schema: "a INT", names: {a: ""}}
  sources.x.names.a:
{path: x/, delivery: stream, schema: "a INT", names: {a: 1}}
  sources.x.names.a: … 1
{path: x/, delivery: stream, schema: "a INT", names: {a: A}, format: csv, options: {header: false}}
  sources.x.names:
{path: x/, delivery: stream, schema: "Id INT"}
  sources.x.schema: … Id … names
{path: x/, delivery: stream, format: xml, schema: "id INT"}
  sources.x.format: … xml … json, csv, parquet, delta
{path: x/, delivery: stream, schema: "id INT, op STRING", change: {column: op, insert: [c], update: [u]}}
  sources.x: … key … change.update_before
{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: {column: op, insert: [c], delete: [c]}}
  sources.x.change: … c
{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: {column: opp, insert: [c]}}
  sources.x.change.column: … opp … op … id, op
{path: x/, delivery: stream, schema: "id INT", max_ahead: 1 dog}
  sources.x.max_ahead: … 1 dog … 30 minutes … 1 month
{path: x/, delivery: stream}
  sources.x: … schema
""",
)
def test_a_source(wrong: Mistakes, wording: Wording, source: str, told: str) -> None:
    wording(wrong({"pipelines/p.yaml": SOURCE + source}), f"pipelines/p.yaml:5: {told}")


@each(
    "table, told",
    """
sources: {x: {kafka: {topic: t, connection: c}, value: {format: json}, path: p/, schema: id INT}}
  .x: … path
sources: {x: {kafka: {topic: t, connection: c}, value: {format: json}, path: p/, on_conflict: fail, format: csv, schema: id INT}}
  .x: … format … on_conflict … path
sources: {x: {kafka: {topic: t, connection: c}, schema: id INT}}
  .x: … value … {format: json}
sources: {x: {path: p/, delivery: stream, value: {format: json}, schema: id INT}}
  .x: … value … kafka
sources: {x: {kafka: {topic: t, connection: c}, value: {format: avro}, schema: id INT}}
  .x.value: … value.registry … value.files
sources: {x: {kafka: {topic: t, connection: c}, value: {format: json, registry: r}, schema: id INT}}
  .x.value: … value.registry
sources: {x: {kafka: {topic: t, connection: c}, value: {format: json}, delivery: interval, schema: id INT}}
  .x: … delivery
sources: {x: {kafka: {topic: t, connection: 'b:9092'}, value: {format: json}, schema: id INT}}
  .x.kafka.connection: … b:9092
sources: {x: {path: p/, delivery: stream, schema: id INT, max_ahead: 2 days}}
  .x.max_ahead: … max_ahead … time
""",
)
def test_keys_without_effect(wrong: Mistakes, wording: Wording, table: str, told: str) -> None:
    text = f"pipeline: p\nschedule: assets\n{table}\n"
    wording(wrong({"pipelines/p.yaml": text}), f"pipelines/p.yaml:3: sources{told}")
