# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong, and the one line that each gets for it."""

import re
from collections.abc import Callable

import pytest

Mistakes = Callable[..., list[str]]

TOP = "top: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 10}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "price desc",
            "prise desc",
            (
                "11: views.top.order_by: unknown column 'prise'; did you mean "
                "'price'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "[item]",
            "[itm]",
            (
                "11: views.top.partition_by: unknown column 'itm'; did you mean "
                "'item'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "from: sales",
            "from: sale",
            (
                "11: views.top.from: unknown table 'sale'; did you mean "
                "'sales'? tables are: sales, clicks, items, prices"
            ),
        ),
        (
            "topk",
            "topc",
            (
                "11: views.top.kind: unknown kind 'topc'; did you mean 'topk'? "
                "kinds are: topk, cogroup, lookup, window_store"
            ),
        ),
        (
            "kind: topk, ",
            "",
            ("11: views.top: `kind` is missing: topk, cogroup, lookup, window_store"),
        ),
        ("limit: 10", "limit: 0", "11: views.top.limit: 0 is too small: at least 1 is wanted"),
        (
            "limit: 10",
            "limit: 1.5",
            ("11: views.top.limit: a number of rows or a column is wanted, not 1.5"),
        ),
        (
            "limit: 10",
            "limit: most",
            ("11: views.top.limit: unknown column 'most'; columns are: id, item, price, at, tags"),
        ),
        (
            "limit: 10",
            "limit: item",
            ("11: views.top.limit: item is STRING; a limit is a whole number"),
        ),
        (
            "limit: 10",
            "limit: 10, offset: -1",
            ("11: views.top.offset: -1 is too small: at least 0 is wanted"),
        ),
        ("limit: 10", "limit: 10, name: x", "11: views.top.name: unknown key 'name'"),
        (
            "limit: 10",
            "limit: 10, function: ntile",
            (
                "11: views.top.function: unknown value "
                "'ntile'; values are: row_number, rank, dense_rank"
            ),
        ),
        (
            "[price desc]",
            "price desc",
            ("11: views.top.order_by: a list is wanted, e.g. [price desc]"),
        ),
        ("[price desc]", "[]", "11: views.top.order_by: at least one is wanted"),
        (
            "price desc",
            "tags",
            ("11: views.top.order_by: tags is a MAP, which has no order and can't be a key"),
        ),
        (
            "price desc",
            "reflect('a')",
            (
                "11: views.top.order_by: the function 'reflect' is "
                "not allowed; did you mean 'repeat'? (scalar, deterministic ones of Spark are)"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, rank: item",
            (
                "11: views.top.rank: the rank column 'item' has the "
                "name of another column; set `rank:` to a new name, or to false for none"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, retention: 90 days",
            (
                "11: views.top.retention: `retention` says "
                "how long a window lives: it needs a `window`"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: session, time: at, gap: 1 hour}",
            "11: views.top.window.type: a top-k's window is tumbling or hopping",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: tumbling, time: item, size: 1 hour}",
            "11: views.top.window.time: item is STRING; an event time is a TIMESTAMP or a DATE",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: hopping, time: at, size: 1 hour}",
            "11: views.top.window: a hopping window takes `size` and `advance`, not `size`",
        ),
        (
            "limit: 10",
            "limit: 10, window: {type: tumbling, time: at, size: 1 dya}",
            (
                "11: views.top.window.size: '1 dya' is not a duration; did you mean '1 days'? "
                "write e.g. '30 minutes' or '1 month'"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: expect_column_to_exist, column: prise}]",
            (
                "11: views.top.expect: unknown column 'prise'; did you mean 'price'? columns are: item, "
                "id, price, at, tags, rank"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: not_null, column: price}]",
            (
                "11: views.top.expect[0].type: 'not_null' is no expectation: Great Expectations' begin "
                "with expect_"
            ),
        ),
        (
            "limit: 10",
            "limit: 10, expect: [{type: expect_x, on_failure: quarantine}]",
            (
                "11: views.top.expect: a view takes on_failure: stop or warn; quarantine would make it "
                "differ from its query"
            ),
        ),
        (
            "top:",
            "Top:",
            ("11: views.Top: 'Top' is not a name: use lower case letters, digits and _"),
        ),
        (
            "top:",
            "top__state:",
            (
                "11: views.top__state: 'top__state': `__` is reserved for the "
                "tables that Sluice keeps beside it"
            ),
        ),
        (
            "top:",
            "_sluice_top:",
            ("11: views._sluice_top: '_sluice_top': names starting with _sluice are reserved"),
        ),
        ("top:", "sales:", "11: views.sales: the name 'sales' is taken by sources.sales"),
        (
            "[item]",
            "[upper(item)]",
            (
                "11: views.top.partition_by: 'upper(item)' needs a name; "
                "write 'upper(item) as <name>'"
            ),
        ),
        (TOP, "top: 3", "11: views.top: a mapping is wanted"),
        (
            TOP,
            "top: {kind: topk, sql: SELECT * FROM sales LIMIT 3}",
            (
                "11: views.top: LIMIT is not "
                "supported in a top-k's sql; write SELECT * FROM (SELECT *, ROW_NUMBER() OVER "
                "(PARTITION BY p ORDER BY s DESC) AS rank FROM input) WHERE rank <= 10"
            ),
        ),
    ],
)
def test_a_topk(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    assert old in TOP
    assert mistakes(TOP.replace(old, new)) == [message]


def test_an_unknown_key_lists_those_that_are_known(mistakes: Mistakes) -> None:
    (message,) = mistakes(TOP.replace("limit: 10", "limit: 10, ofset: 3"))
    assert message == (
        "11: views.top.ofset: unknown key 'ofset'; did you mean 'offset'? keys are: kind, "
        "description, expect, retention, from, partition_by, order_by, limit, offset, select, "
        "rank, function, window, headroom, strategy, sql"
    )


LOOKUP = """\
bills:
  kind: lookup
  from: sales
  join: [{dimension: items, on: item = items.item, type: left}]
  select: {id: id, department: items.department}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "items.department",
            "items.departmnt",
            (
                "15: views.bills.select.department: unknown column "
                "'departmnt' of items; did you mean 'department'? columns are: item, department, price"
            ),
        ),
        (
            "items.department",
            "department",
            (
                "15: views.bills.select.department: column 'department' "
                "belongs to items; write items.department"
            ),
        ),
        (
            "items.department",
            "brands.name",
            (
                "15: views.bills.select.department: unknown table or "
                "struct 'brands'; known ones are: items, id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "itm = items.item",
            (
                "14: views.bills.join[0].on: unknown column "
                "'itm'; did you mean 'item'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "item = items.department",
            (
                "14: views.bills.join[0].on: items is "
                "unique by item: join on item as well, or rows multiply"
            ),
        ),
        (
            "item = items.item",
            "item > items.item",
            (
                "14: views.bills.join[0].on: 'item > items.item' "
                "is not `<fact expression> = items.<column>`: a lookup joins by equality only"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = sales.item",
            (
                "14: views.bills.join[0].dimension: sales is no dimension: a lookup joins only what "
                "stands under `dimensions:` (declare the table there as well, with format: delta)"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: itmes, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: unknown dimension 'itmes'; "
                "did you mean 'items'? dimensions are: items, prices"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: sales is no dimension: a lookup joins only what "
                "stands under `dimensions:` (declare the table there as well, with format: delta)"
            ),
        ),
        (
            "type: left",
            "type: outer",
            ("14: views.bills.join[0].type: unknown value 'outer'; values are: inner, left"),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time\n  time: at",
            (
                "16: views.bills.join[0].dimension: as_of: event_time needs the past of items: declare "
                "it with history: true"
            ),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time",
            ("11: views.bills: `time` names the fact's event time: it goes with as_of: event_time"),
        ),
        (
            "from: sales",
            "from: sales\n  retention: 1 day",
            ("11: views.bills: `retention` needs a window; a lookup keeps its facts' rows"),
        ),
        (
            "type: left}",
            "type: left}, {dimension: items, on: item = items.item}",
            (
                "11: views.bills: items is joined twice; declare a dimension view of another name "
                "for one"
            ),
        ),
    ],
)
def test_a_lookup(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    found = mistakes(LOOKUP.replace(old, new))
    assert [m for m in found if "select" not in m or "select" in message] == [message]


COGROUP = """\
carts:
  kind: cogroup
  key: [item]
  streams:
    sold: {from: sales, aggregates: {total: sum(price), n: count(*)}}
    seen: {from: clicks, aggregates: {clicks: count(*)}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sum(price)",
            "sum(prise)",
            (
                "15: views.carts.streams.sold.aggregates.total: unknown "
                "column 'prise'; did you mean 'price'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "sum(price)",
            "first(price)",
            (
                "15: views.carts.streams.sold.aggregates.total: first "
                "depends on the order of the rows; write first(x ORDER BY at), "
                "or give the stream a `sequence`"
            ),
        ),
        (
            "sum(price)",
            "sum(price) filter (where id)",
            (
                "15: views.carts.streams.sold.aggregates."
                "total: 'id' is INT; a condition is true or false"
            ),
        ),
        (
            "sum(price)",
            "shop.mean:Mean(price)",
            (
                "15: views.carts.streams.sold.aggregates.total: "
                "the module 'shop.mean' is not listed under `modules:` of sluice.yaml; modules are: "
                "(none)"
            ),
        ),
        (
            "[item]",
            "[itm]",
            (
                "13: views.carts.key: unknown column 'itm'; did you mean 'item'? "
                "columns are: id, item, price, at, tags"
            ),
        ),
        (
            "[item]",
            "[item, item]",
            ("13: views.carts.key: the column 'item' is that of the key already"),
        ),
        (
            "from: sales",
            "from: sales, key: [item, id]",
            (
                "15: views.carts.streams.sold.key: "
                "2 expressions for the 1 columns of the view's `key`"
            ),
        ),
        (
            "clicks: count",
            "total: count",
            (
                "16: views.carts.streams.seen.aggregates.total: the "
                "column 'total' is that of the stream sold already"
            ),
        ),
        (
            "clicks: count",
            "item: count",
            (
                "16: views.carts.streams.seen.aggregates.item: the "
                "column 'item' is that of the key already"
            ),
        ),
        (
            "from: sales",
            "from: sales, initial: {totl: 0}",
            (
                "15: views.carts.streams.sold.initial."
                "totl: unknown aggregate 'totl'; did you mean 'total'? aggregates are: total, n"
            ),
        ),
        (
            "from: sales",
            "from: sales, where: price",
            (
                "15: views.carts.streams.sold.where: 'price' "
                "is DECIMAL(12, 2); a condition is true or false"
            ),
        ),
        (
            "from: sales",
            "from: sales, time: at",
            ("11: views.carts: `time` of the stream 'sold' needs a `window`"),
        ),
        (
            "key: [item]",
            "key: [item]\n  retention: 1 day",
            ("11: views.carts: `retention` says how long a window lives: it needs a `window`"),
        ),
        (
            "key: [item]",
            "key: [item]\n  select: {rate: totl / n}",
            (
                "14: views.carts.select.rate: "
                "unknown column 'totl'; did you mean 'total'? columns are: item, total, n, clicks"
            ),
        ),
        (
            "from: sales, aggregates: {total: sum(price), n: count(*)}",
            "from: sales",
            "15: views.carts.streams.sold: `aggregates` is missing",
        ),
    ],
)
def test_a_cogroup(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    found = mistakes(COGROUP.replace(old, new))
    assert [m for m in found if "item, at, where_from" not in m] == [message]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "{kind: window_store, from: sales, key: [item], time: att}",
            (
                "11: views.s.time: unknown "
                "column 'att'; did you mean 'at'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [at], time: at}",
            ("11: views.s.key: at is the event time already: drop it from the key"),
        ),
        (
            "{kind: window_store, from: sales, key: [window_start], time: at}",
            (
                "11: views.s.key: "
                "window_start and window_end are the store's own columns, not its key"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [tags], time: at}",
            ("11: views.s.key: tags is a MAP, which has no order and can't be a key"),
        ),
    ],
)
def test_a_window_store(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(f"s: {view}") == [message]


SOURCE = 'pipeline: p\nschedule: "@daily"\nstart_date: 2017-01-01\nsources:\n  x: '


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '{path: x/, schema: "id INT"}',
            (
                "5: sources.x: an interval's rows can't be told: put "
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
            '{path: x/, delivery: stream, schema: "id INTT"}',
            (
                "5: sources.x.schema: unknown type "
                "'INTT'; did you mean 'INT'? types are: TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, "
                "DECIMAL, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP, STRUCT, "
                "VARIANT"
            ),
        ),
        (
            '{path: x/, delivery: stream, schema: "Id INT"}',
            ("5: sources.x.schema: 'Id' is not a name: use lower case letters, digits and _"),
        ),
        (
            '{path: x/, delivery: stream, format: xml, schema: "id INT"}',
            (
                "5: sources.x.format: "
                "unknown value 'xml'; values are: json, csv, parquet, delta, kafka"
            ),
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
            "x.join[1].on: column 'id' belongs to a; write a.id",
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
            ("2: can't read this as YAML: expected ',' or ']', but got ':'"),
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


def test_all_mistakes_of_all_files_are_told_at_once_in_their_order(wrong: Mistakes) -> None:
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


def test_a_view_over_a_broken_one_is_not_blamed(mistakes: Mistakes) -> None:
    broken = TOP.replace("price desc", "upper(")
    found = mistakes(f"{broken}\nafter: {{kind: topk, from: top, order_by: [item], limit: 1}}")
    assert len(found) == 1
    assert found[0].startswith("11: views.top.order_by: can't read 'upper('")


def test_a_folder_that_is_not_there_is_named(wrong: Mistakes) -> None:
    assert wrong({}) == ["pipelines: there is no pipeline's file (*.yaml)"]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "v: {kind: topk, from: sales, order_by: [price + at], limit: 1}",
            (
                "11: views.v.order_by: 'price + at': + takes two numbers, a time and an interval, "
                "or a DATE and a number of days, not DECIMAL(12, 2) and TIMESTAMP"
            ),
        ),
        (
            "v: {kind: topk, from: sales, partition_by: [upper(tags) as t], order_by: [id], limit: 1}",
            (
                "11: views.v.partition_by: 'UPPER(tags)': upper takes a text, or what can be written "
                "as one, not MAP<STRING, STRING>"
            ),
        ),
        (
            "v: {kind: topk, from: sales, order_by: [id], limit: 1, select: {age: at - timestamp '2017-01-01'}}",
            (
                "11: views.v.select.age: \"at - timestamp '2017-01-01'\" is an interval, which no table "
                "can hold; write it as a number, e.g. by timestampdiff(second, a, b)"
            ),
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: sum(item)}}}}",
            "11: views.v.streams.s.aggregates.n: 'sum(item)': sum takes a number, not STRING",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: avg(at)}}}}",
            "11: views.v.streams.s.aggregates.n: 'avg(at)': avg takes a number, not TIMESTAMP",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, where: id, aggregates: {n: count(*)}}}}",
            "11: views.v.streams.s.where: 'id' is INT; a condition is true or false",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {s: {from: sales, aggregates: {n: count(*) filter (where item)}}}}",
            "11: views.v.streams.s.aggregates.n: 'item' is STRING; a condition is true or false",
        ),
        (
            "v: {kind: cogroup, key: [item], streams: {a: {from: sales, aggregates: {n: count(*)}}, b: {from: clicks, key: [where_from], aggregates: {m: count(*)}}}}",
            (
                "11: views.v.streams.b.key: the key 'item' is STRUCT<page: STRING> here and STRING in "
                "the stream a; cast one of them"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: tags = items.item}]}",
            (
                "11: views.v.join[0].on: 'tags' is MAP<STRING, STRING> and items.item is STRING: "
                "they can't be compared; cast one of them"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}], select: {x: items.price > at}}",
            (
                "11: views.v.select.x: 'items.price > at': DECIMAL(12, 2) can't be compared with "
                "TIMESTAMP"
            ),
        ),
    ],
)
def test_types_that_do_not_fit(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [message]


KAFKA = "options: {kafka.bootstrap.servers: 'b:9092', subscribe: t}"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            f"sources: {{x: {{format: kafka, delivery: stream, path: p/, schema: id INT, {KAFKA}}}}}",
            "sources.x.path: kafka has no path: name the topic in `options` (subscribe)",
        ),
        (
            "sources: {x: {format: kafka, delivery: stream, schema: id INT, options: {subscribe: t}}}",
            "sources.x.options: `options` must name the brokers: kafka.bootstrap.servers",
        ),
        (
            "sources: {x: {format: kafka, delivery: stream, schema: id INT, options: {kafka.bootstrap.servers: b}}}",
            (
                "sources.x.options: no topic is named: "
                "give `options` one of subscribe, subscribePattern, assign"
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
                "use json, csv, parquet, delta, jdbc"
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


def test_a_topic_has_no_intervals(wrong: Mistakes) -> None:
    text = f"""\
pipeline: p
schedule: "@daily"
start_date: 2017-01-01
sources:
  x: {{format: kafka, schema: "id INT, at TIMESTAMP", time: at, {KAFKA}}}
"""
    assert wrong({"pipelines/p.yaml": text}) == [
        (
            "pipelines/p.yaml:5: sources.x.format: kafka is read as it arrives, not by interval: "
            "write delivery: stream"
        )
    ]


def test_an_order_among_rows_that_all_stay_is_refused(mistakes: Mistakes) -> None:
    view = "s: {kind: window_store, from: sales, key: [item], time: at, duplicates: true, sequence: [id]}"
    assert mistakes(view) == [
        (
            "11: views.s.sequence: `sequence` says which of two rows stands; with `duplicates` both do: "
            "drop one"
        )
    ]
