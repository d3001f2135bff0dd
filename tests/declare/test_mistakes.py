# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in sources, dimensions, pipelines and the project, and the line that each gets."""

import re
from collections.abc import Callable

import pytest

Mistakes = Callable[..., list[str]]

SOURCE = 'pipeline: p\nschedule: "@daily"\nstart_date: 2017-01-01\nsources:\n  x: '


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '{path: x/, schema: "id INT"}',
            (
                "5: sources.x: an interval's rows can't be distinguished: put "
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
            ("5: sources.x: `on_conflict` has no effect: rows that are changes follow each other"),
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
                ('schema: "a INT", names: {a: 1}', ".a: a text is wanted, not 1"),
                (
                    'schema: "a INT", names: {a: A}, format: csv, options: {header: false}',
                    ": a file without a header has no names: its columns go by their order",
                ),
            )
        ),
        (
            '{path: x/, delivery: stream, schema: "Id INT"}',
            (
                "5: sources.x.schema: 'Id' is not a name: use lower case letters, digits and _; if "
                "files call it so, declare another name, and 'Id' under `names`"
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
                "5: sources.x: without a `key` an update must bring the "
                "row as it was: give change.update_before its words, or the source a `key`"
            ),
        ),
        (
            (
                '{path: x/, delivery: stream, schema: "id INT, op STRING", key: [id], change: '
                "{column: op, insert: [c], delete: [c]}}"
            ),
            ("5: sources.x.change: 'c': a word may mean one thing only"),
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
    ("dimension", "message"),
    [
        ("{path: x/, schema: id INT}", "x: `key` is missing"),
        ("{path: x/, schema: id INT, key: []}", "x.key: at least one is wanted"),
        (
            "{path: x/, schema: id INT, key: [id], valid_from: id}",
            ("x: `valid_from` says since when a version holds: it needs history: true"),
        ),
        (
            '{path: x/, schema: "id INT, valid_to DATE", key: [id], history: true}',
            "x.schema: history: true adds the columns valid_to itself",
        ),
        (
            "{join: [{dimension: a}, {dimension: c, on: a.id = b.id}], select: {id: a.id}}",
            "x.join[1].dimension: unknown dimension 'c'; dimensions are: a, b",
        ),
        (
            "{join: [{dimension: a}, {dimension: b}], select: {id: a.id}}",
            "x.join[1].on: the first dimension has no `on`, every other one has",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: a.id = b.other}], select: {id: a.id}}",
            "x.join[1].on: b is unique by id: join on id as well, or rows multiply",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: a.id = b.id}], select: {other: b.other}}",
            "x.select: the key of a must be selected: a.id",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: id = b.id}], select: {id: a.id}}",
            "x.join[1].on: column 'id' is in both a and b; write a.id or b.id",
        ),
    ],
)
def test_a_dimension(wrong: Mistakes, dimension: str, message: str) -> None:
    text = f"""\
pipeline: p
schedule: assets
dimensions:
  a: {{path: a/, schema: "id INT, other INT", key: [id]}}
  b: {{path: b/, schema: "id INT, other INT", key: [id]}}
  x: {dimension}
"""
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:6: dimensions.{message}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "pipeline: p\nschedule: sometimes\nstart_date: 2017-01-01\n",
            (
                "2: schedule: 'sometimes' "
                "is no schedule; write a cron expression, @hourly, @daily, @weekly, @monthly, @yearly or "
                "assets"
            ),
        ),
        (
            'pipeline: p\nschedule: "@daily"\n',
            ("1: `start_date` is missing: the first interval's start"),
        ),
        (
            'pipeline: p\nschedule: "@daily"\nstart_date: soon\n',
            ("3: start_date: 'soon' is not a time; write 2017-01-31 or 2017-01-31T08:30:00+01:00"),
        ),
        (
            'pipeline: p\nschedule: "@daily"\nstart_date: 2017-13-45\n',
            (
                "3: start_date: '2017-13-45' is not a time; "
                "write 2017-01-31 or 2017-01-31T08:30:00+01:00"
            ),
        ),
        (
            'pipeline: p\nschedule: "@daily"\nstart_date:\n',
            "3: start_date: `start_date` is missing: the first interval's start",
        ),
        (
            "pipeline: p\nschedule:\n",
            (
                "2: schedule: it is empty; write a cron expression, @hourly, @daily, @weekly, "
                "@monthly, @yearly or assets"
            ),
        ),
        (
            "pipeline: p\nschedule: 5\n",
            (
                "2: schedule: 5 is no schedule; write a cron expression, @hourly, @daily, @weekly, "
                "@monthly, @yearly or assets"
            ),
        ),
        (
            "pipeline: p\nschedule: assets\nviews:\n  v: {kind: topk}\n  v: {kind: topk}\n",
            "5: 'v' is given twice in one mapping",
        ),
        ("schedule: assets\n", "1: `pipeline` is missing"),
        (
            "pipeline: p\nschedule: assets\nstart_date: 2017-01-02\nend_date: 2017-01-02\n",
            "4: end_date: `end_date` is not after `start_date`",
        ),
        (
            "pipeline: p\nschedule: assets\ntimezone: Mars\n",
            ("3: timezone: unknown timezone 'Mars'; write a name such as Europe/Berlin"),
        ),
        (
            "pipeline: p\nschedule: assets\nairflow: {tasks: one}\n",
            ("3: airflow.tasks: unknown value 'one'; values are: auto, table, pipeline"),
        ),
        (
            "pipeline: p\nschedule: assets\nveiws: {}\n",
            (
                "3: veiws: unknown key 'veiws'; did you "
                "mean 'views'? keys are: pipeline, description, schedule, start_date, end_date, catchup, timezone, "
                "sources, dimensions, views, airflow"
            ),
        ),
        (
            "pipeline: p\nschedule: assets\nviews: [a]\n",
            ("3: views: a mapping of names to tables is wanted"),
        ),
        (
            (
                'pipeline: p\nschedule: assets\nsources:\n  x: {path: "x/{interval_start:%Y}", '
                "schema: id INT}\n"
            ),
            (
                "4: sources.x: a pipeline with the schedule 'assets' has no "
                "intervals; use delivery: stream"
            ),
        ),
        (
            "pipeline: [p\nschedule: assets\n",
            (
                "2: can't read this as YAML: expected ',' or ']', but got ':'; inside {...} and "
                "[...] a comma ends a value: quote one that has commas"
            ),
        ),
    ],
)
def test_a_pipeline(wrong: Mistakes, text: str, message: str) -> None:
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:{message}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lak: x\n",
            (
                "1: lak: unknown key 'lak'; did you mean 'lake'? keys are: lake, spark, "
                "quality, airflow, modules"
            ),
        ),
        (
            "spark: {engine: local}\n",
            ("1: spark.engine: unknown value 'local'; values are: submit, connect"),
        ),
        (
            "lake: a\nlake: b\n",
            "2: 'lake' is given twice in one mapping",
        ),
        (
            "lake: ${NOWHERE}\n",
            (
                "1: lake: unknown environment variable 'NOWHERE' without a "
                "default; write ${NOWHERE:-default}"
            ),
        ),
        ("spark: 3\n", "1: spark: a mapping is wanted, not 3"),
    ],
)
def test_the_project(wrong: Mistakes, text: str, message: str) -> None:
    files = {"sluice.yaml": text, "pipelines/p.yaml": "pipeline: p\nschedule: assets\n"}
    assert wrong(files) == [f"sluice.yaml:{message}"]


def test_all_mistakes_of_all_files_are_reported_at_once_in_their_order(wrong: Mistakes) -> None:
    files = {
        "sluice.yaml": "lak: x\n",
        "pipelines/a.yaml": "pipeline: a\nschedule: never\nviews:\n  x: {kind: nothing}\n",
        "pipelines/b.yaml": "pipeline: [b\n",
    }
    found = [re.sub(r"(:\d+:).*", r"\1", mistake) for mistake in wrong(files)]
    assert found == [
        "pipelines/a.yaml:2:",
        "pipelines/a.yaml:4:",
        "pipelines/b.yaml:2:",
        "sluice.yaml:1:",
    ]


def test_a_folder_that_is_not_there_is_named(wrong: Mistakes) -> None:
    assert wrong({}) == ["pipelines: there is no pipeline's file (*.yaml)"]


TOPIC = "kafka: {topic: t, connection: c}"


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
                "sources.x.kafka.connection: 'b:9092' is no connection's name (letters, digits, _): "
                "addresses and settings belong into the connection"
            ),
        ),
        (
            "sources: {x: {path: p/, delivery: stream, schema: id INT, max_ahead: 2 days}}",
            "sources.x.max_ahead: `max_ahead` guards the event time: name its column as `time`",
        ),
        (
            "dimensions: {x: {format: kafka, schema: id INT, key: [id]}}",
            (
                "dimensions.x.format: a dimension is loaded whole, and a topic has no end: "
                "use json, csv, parquet, delta, jdbc; "
                "or read the topic as a source with a `key`, and join it by a view of kind join"
            ),
        ),
        (
            "dimensions: {x: {format: jdbc, path: p/, schema: id INT, key: [id]}}",
            (
                "dimensions.x.path: a database has no path: "
                "name its table in `options` (dbtable or query)"
            ),
        ),
    ],
)
def test_what_would_have_no_effect(wrong: Mistakes, table: str, message: str) -> None:
    text = f"pipeline: p\nschedule: assets\n{table}\n"
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:3: {message}"]


def test_bounds_off_the_schedule_are_refused_with_the_nearest_local_ones(wrong: Mistakes) -> None:
    text = """\
pipeline: p
schedule: "@weekly"
timezone: Asia/Kolkata
start_date: 2024-01-01
end_date: 2024-02-04T00:00Z
"""
    nearest = "is not a bound of the schedule '@weekly' (Asia/Kolkata); the nearest are"
    assert wrong({"pipelines/p.yaml": text}) == [
        (
            f"pipelines/p.yaml:4: start_date: 2024-01-01T00:00:00+05:30 {nearest} "
            "2023-12-31T00:00:00+05:30 and 2024-01-07T00:00:00+05:30"
        ),
        (
            f"pipelines/p.yaml:5: end_date: 2024-02-04T05:30:00+05:30 {nearest} "
            "2024-02-04T00:00:00+05:30 and 2024-02-11T00:00:00+05:30"
        ),
    ]


def test_dates_at_the_end_of_the_calendar_are_refused_in_a_sentence(wrong: Mistakes) -> None:
    text = 'pipeline: p\nschedule: "@daily"\nstart_date: 0001-01-01\nend_date: 9999-12-31\n'
    said = wrong({"pipelines/p.yaml": text})
    assert [m[: len("pipelines/p.yaml:3: start_date: 0001-01-01 is")] for m in said] == [
        "pipelines/p.yaml:3: start_date: 0001-01-01 is",
        "pipelines/p.yaml:4: end_date: 9999-12-31 is a",
    ]
