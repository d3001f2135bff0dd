# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in sources, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes

TOPIC = "kafka: {topic: t, connection: c}"
SOURCE = 'pipeline: p\nschedule: "@daily"\nstart_date: 2017-01-01\nsources:\n  x: '


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '{path: x/, schema: "id INT"}',
            (
                "5: sources.x: Sluice can't find an interval's rows: put "
                "{interval_start:%Y-%m-%d} into `path`, or name the event `time` column that selects "
                "them"
            ),
        ),
        (
            '{path: "x/{interval_strt:%Y}", schema: "id INT"}',
            (
                "5: sources.x.path: unknown "
                "placeholder 'interval_strt'; did you mean 'interval_start'? placeholders are: "
                "interval_start, interval_end"
            ),
        ),
        (
            '{path: "x/{interval_start}", schema: "id INT"}',
            ("5: sources.x.path: {interval_start} needs a format, e.g. {interval_start:%Y-%m-%d}"),
        ),
        (
            '{path: "x/{interval_start:%Q}", schema: "id INT"}',
            (
                "5: sources.x.path: "
                "{interval_start:%Q} is not a format of a time; write e.g. %Y-%m-%d"
            ),
        ),
        (
            '{path: "x/{interval_start:%Y}", delivery: stream, schema: "id INT"}',
            ("5: sources.x: a stream is read as it arrives: its `path` takes no {interval_start}"),
        ),
        (
            '{delivery: stream, schema: "id INT"}',
            ("5: sources.x: `path` is missing: a parquet source is read from one"),
        ),
        (
            '{path: x/, time: id, schema: "id INT"}',
            ("5: sources.x.time: id is INT; an event time is a TIMESTAMP or a DATE"),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT", key: [idd]}',
            ("5: sources.x.key: unknown column 'idd'; did you mean 'id'? columns are: id"),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT", sequence: [id]}',
            ("5: sources.x: `sequence` orders the rows of one key; this source has no `key`"),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT", on_conflict: fail}',
            ("5: sources.x: `on_conflict` is about rows of one key; this source has no `key`"),
        ),
        (
            (
                '{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], '
                "change: {column: op, insert: [c]}, on_conflict: fail}"
            ),
            ("5: sources.x: `on_conflict` has no effect, because changes are applied in order"),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT", key: [id], on_conflict: first}',
            ("5: sources.x.on_conflict: unknown value 'first'; values are: last, quarantine, fail"),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INTT"}',
            (
                "5: sources.x.schema: unknown type "
                "'INTT'; did you mean 'INT'? types are: TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, "
                "DECIMAL, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP, STRUCT"
            ),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT, v ARRAY<VARIANT>", key: [id]}',
            (
                "5: sources.x.schema: column v is ARRAY<VARIANT>, which can be neither compared nor "
                "read without Spark; declare STRING, which keeps JSON as it was written, and read a "
                "part in a view: get_json_object(v, '$.part')"
            ),
        ),
        *(
            (f"{{path: x/, delivery: stream, {keys}}}", f"5: sources.x.names{message}")
            for keys, message in (
                (
                    'schema: "id INT", names: {ix: ID}',
                    ".ix: unknown column 'ix'; columns are: id",
                ),
                (
                    'schema: "a INT, b INT", names: {a: X Y, b: x y}',
                    ".b: column a is read from 'x y' already",
                ),
                (
                    'schema: "a INT, b INT", names: {a: B}',
                    ".a: column b is read from 'B' already",
                ),
                ('schema: "a INT", names: {a: ""}', ".a: '' can't be the name of a file's column"),
                ('schema: "a INT", names: {a: 1}', ".a: a text is expected, not 1"),
                (
                    'schema: "a INT", names: {a: A}, format: csv, options: {header: false}',
                    ": a file without a header has no names: its columns are read in order",
                ),
            )
        ),
        (
            '{path: x/, delivery: stream, schema: "Id INT"}',
            (
                "5: sources.x.schema: 'Id' is not a name: use lower case letters, digits and _; if "
                "the files use this name, declare another one, and list 'Id' under `names`"
            ),
        ),
        (
            '{path: x/, delivery: stream, format: xml, schema: "id INT"}',
            ("5: sources.x.format: unknown value 'xml'; values are: json, csv, parquet, delta"),
        ),
        (
            (
                '{path: x/, delivery: stream, schema: "id INT, op STRING", change: {column: op, '
                "insert: [c], update: [u]}}"
            ),
            (
                "5: sources.x: without a `key` an update must contain the "
                "row as it was: give change.update_before its words, or the source a `key`"
            ),
        ),
        (
            (
                '{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: '
                "{column: op, insert: [c], delete: [c]}}"
            ),
            ("5: sources.x.change: 'c': a word can have only one meaning"),
        ),
        (
            (
                '{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: '
                "{column: opp, insert: [c]}}"
            ),
            (
                "5: sources.x.change.column: unknown column 'opp'; did "
                "you mean 'op'? columns are: id, op"
            ),
        ),
        (
            '{path: x/, delivery: stream, schema: "id INT", max_ahead: 1 dog}',
            (
                "5: sources.x."
                "max_ahead: '1 dog' is not a duration; write e.g. '30 minutes' or '1 month'"
            ),
        ),
        ("{path: x/, delivery: stream}", "5: sources.x: `schema` is missing"),
    ],
)
def test_a_source(wrong: Mistakes, source: str, message: str) -> None:
    assert wrong({"pipelines/p.yaml": SOURCE + source}) == [f"pipelines/p.yaml:{message}"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            f"sources: {{x: {{{TOPIC}, value: {{format: json}}, path: p/, schema: id INT}}}}",
            "sources.x: a topic takes no `path`",
        ),
        (
            f"sources: {{x: {{{TOPIC}, schema: id INT}}}}",
            "sources.x: `value` is missing: give the form of the messages, {format: json}",
        ),
        (
            "sources: {x: {path: p/, delivery: stream, value: {format: json}, schema: id INT}}",
            "sources.x: `value` describes messages: name their topic in `kafka`",
        ),
        (
            f"sources: {{x: {{{TOPIC}, value: {{format: avro}}, schema: id INT}}}}",
            (
                "sources.x.value: `value.registry` is missing: the connection to the schema registry"
                ", or `value.files`: the schemas themselves"
            ),
        ),
        (
            f"sources: {{x: {{{TOPIC}, value: {{format: json, registry: r}}, schema: id INT}}}}",
            "sources.x.value: `value.registry` is for avro, debezium-avro, protobuf, not for json",
        ),
        (
            f"sources: {{x: {{{TOPIC}, value: {{format: json}}, delivery: interval, schema: id INT}}}}",
            "sources.x: a topic is read as messages arrive: leave `delivery` out",
        ),
        (
            "sources: {x: {kafka: {topic: t, connection: 'b:9092'}, value: {format: json}, schema: id INT}}",
            (
                "sources.x.kafka.connection: 'b:9092' is not the name of a connection (letters, digits, _): "
                "addresses and settings belong in the connection"
            ),
        ),
        (
            "sources: {x: {path: p/, delivery: stream, schema: id INT, max_ahead: 2 days}}",
            "sources.x.max_ahead: `max_ahead` guards the event time: name its column as `time`",
        ),
    ],
)
def test_what_would_have_no_effect(wrong: Mistakes, table: str, message: str) -> None:
    text = f"pipeline: p\nschedule: assets\n{table}\n"
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:3: {message}"]
