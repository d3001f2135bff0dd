"""Nothing that YAML can say reaches the JVM, a shell, a file's name or a user's environment.

Every text of the lists is put into every place of a configuration that takes one of its kind, and
has to be refused there with file and line, before anything is run.
"""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sluice.declare.project import load
from sluice.errors import ConfigError

HERE = Path(__file__).parent
KNOWN = (HERE.parent / "language" / "hostile.txt").read_text("utf-8").split("\n")
EXPRESSIONS = [line.split("\t")[0] for line in KNOWN if "\t" in line]
EXPRESSIONS += (HERE / "expressions.txt").read_text("utf-8").splitlines()
AGGREGATES = {"sum(", "count(", "any(", "approx_top_k(", "max_by(", "percentile("}  # as they are
Config = dict[str, Any]

COLUMNS = (
    "id INT, item STRING, price DECIMAL(12,2), s STRING, flag BOOLEAN, a INT, b INT, "
    "xs ARRAY<INT>, at TIMESTAMP"
)
SHOP: Config = {
    "pipeline": "shop",
    "schedule": "@daily",
    "start_date": "2017-01-01",
    "sources": {"sales": {"path": "s/{interval_start:%Y}/", "schema": COLUMNS, "key": ["id"]}},
    "dimensions": {
        "items": {"path": "i/", "schema": "item STRING, price DECIMAL(12,2)", "key": ["item"]}
    },
    "views": {},
}
JOIN = [{"dimension": "items", "on": "item = items.item"}]
TOP: Config = {"kind": "topk", "from": "sales", "partition_by": ["item"], "order_by": ["price"]}
TOP["limit"] = 2


def streams(**stream: Any) -> Config:
    return {"s": {"from": "sales", "aggregates": {"n": "count(*)"}, **stream}}


COGROUP = {"kind": "cogroup", "key": ["item"], "streams": streams()}
LOOKUP = {"kind": "lookup", "from": "sales", "join": JOIN}
STORE = {"kind": "window_store", "from": "sales", "key": ["item"], "time": "at"}
WHERE_EXPRESSIONS_STAND: dict[str, Callable[[str], Config]] = {
    "topk.select": lambda e: {**TOP, "select": {"x": e}},
    "topk.order_by": lambda e: {**TOP, "order_by": [e]},
    "topk.partition_by": lambda e: {**TOP, "partition_by": [{"x": e}]},
    "topk.limit": lambda e: {**TOP, "limit": e},
    "cogroup.where": lambda e: {**COGROUP, "streams": streams(where=e)},
    "cogroup.key": lambda e: {**COGROUP, "key": ["k"], "streams": streams(key=[e])},
    "cogroup.aggregates": lambda e: {**COGROUP, "streams": streams(aggregates={"n": e})},
    "cogroup.select": lambda e: {**COGROUP, "select": {"x": e}},
    "lookup.select": lambda e: {**LOOKUP, "select": {"x": e}},
    "lookup.on": lambda e: {**LOOKUP, "join": [{"dimension": "items", "on": e}]},
    "window_store.select": lambda e: {**STORE, "select": {"x": e}},
}


def test_there_are_enough_of_them() -> None:
    assert len(set(EXPRESSIONS)) >= 200
    assert len(NAMES) * len(WHERE_NAMES_STAND) >= 200


@pytest.mark.parametrize("place", WHERE_EXPRESSIONS_STAND)
def test_a_hostile_expression_is_refused_wherever_it_stands(tmp_path: Path, place: str) -> None:
    config, declare = deepcopy(SHOP), WHERE_EXPRESSIONS_STAND[place]
    texts = [e for e in EXPRESSIONS if place != "cogroup.aggregates" or not is_aggregate(e)]
    config["views"] = {f"v{i}": declare(text) for i, text in enumerate(texts)}
    said = "\n".join(refusals(tmp_path, config))
    refused = {int(number) for number in re.findall(r"views\.v(\d+)\b", said)}
    assert [e for i, e in enumerate(texts) if i not in refused] == []


def is_aggregate(text: str) -> bool:
    return any(text.startswith(name) for name in AGGREGATES)


NAMES = [
    *("", ".", "..", " ", "../x", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "x/../y"),
    *("~", "~root", "x%2f..", "x%00", "con\x00", "a b", "A", "é", "ｅ", "а", "a-b", "a.b", "x:y"),
    *("a;b", "a'b", 'a"b', "a`b", "a`; drop table x; --", "$(id)", "`id`", "{{ x }}", "{% x %}"),
    *("{interval_start}", "${HOSTILE}", "<script>", "a\nb", "a\tb", "\u202egnp", "\u200b", "_x"),
    *("_sluice_id", "_sluice_change", "_delta_log", "_change_data", "__quality", "1x", "-x"),
    *("--config", "*", "?", "s3://x", "file:///etc", "a" * 300, "1", "%s", "a,b", "a=b", "#a"),
]


def renamed(section: str, old: str) -> Callable[[Config, str], None]:
    def rename(config: Config, name: str) -> None:
        config[section][name] = config[section].pop(old)

    return rename


def viewed(**view: Any) -> Callable[[Config, str], None]:
    """A view with `NAME` for the name, as a key or as a value."""

    def put(config: Config, name: str) -> None:
        told = json.dumps({**TOP, **view}).replace('"NAME"', json.dumps(name))
        config["views"]["v"] = json.loads(told)

    return put


WHERE_NAMES_STAND: dict[str, Callable[[Config, str], None]] = {
    "pipeline": lambda c, n: c.update(pipeline=n),
    "a source": renamed("sources", "sales"),
    "a dimension": renamed("dimensions", "items"),
    "a view": lambda c, n: c["views"].update({n: TOP}),
    "a column": lambda c, n: c["dimensions"]["items"].update(schema=f"item STRING, {n} INT"),
    "a key": lambda c, n: c["sources"]["sales"].update(key=[n]),
    "from": viewed(**{"from": "NAME"}),
    "a selected column": viewed(select={"NAME": "price"}),
    "a partition": viewed(partition_by=[{"NAME": "item"}]),
    "rank": viewed(rank="NAME"),
    "a stream": viewed(
        kind="cogroup", streams={"NAME": {"from": "sales", "aggregates": {"n": "count(*)"}}}
    ),
    "an aggregate": viewed(
        kind="cogroup", streams={"s": {"from": "sales", "aggregates": {"NAME": "count(*)"}}}
    ),
    "a joined dimension": viewed(kind="lookup", join=[{"dimension": "NAME", "on": "item = item"}]),
    "timezone": lambda c, n: c.update(timezone=n),
    "schedule": lambda c, n: c.update(schedule=n),
    "format": lambda c, n: c["sources"]["sales"].update(format=n),
    "kind": viewed(kind="NAME"),
    "an expectation": lambda c, n: c["sources"]["sales"].update(expect=[{"type": n}]),
}


@pytest.mark.parametrize("place", WHERE_NAMES_STAND)
def test_a_hostile_name_is_refused_wherever_it_stands(tmp_path: Path, place: str) -> None:
    taken = []
    for name in NAMES:
        config = deepcopy(SHOP)
        WHERE_NAMES_STAND[place](config, name)
        if not refusals(tmp_path, config):
            taken.append(name)
    assert taken == []


@pytest.mark.parametrize(
    "path",
    [
        "{}",
        "{0}",
        "{environ[SECRET]}",
        "{interval_start.__class__}",
        "{interval_start.tzinfo:%Y}",
        "{interval_start[0]:%Y}",
        "{interval_start!r}",
        "{interval_start!r:%Y}",
        "{interval_start:{interval_end}}",
        "{interval_start:%Y{interval_end.__class__}}",
        "{interval_start:%Y{interval_end.__class__.__mro__[1].__subclasses__}}",
        "{interval_start:%Y",
        "{interval_start:%Y}}",
        "a\x00b/{interval_start:%Y}",
        "{interval_start:%Y}\n/etc",
    ],
)
def test_paths_are_filled_with_the_bounds_alone(tmp_path: Path, path: str) -> None:
    config = deepcopy(SHOP)
    config["sources"]["sales"]["path"] = path
    assert refusals(tmp_path, config)


@pytest.mark.parametrize(
    "name",
    [
        *("spark.jars", "spark.jars.packages", "spark.jars.repositories", "spark.files"),
        *("spark.archives", "spark.submit.pyFiles", "spark.plugins", "spark.extraListeners"),
        *("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
        *("spark.driver.defaultJavaOptions", "spark.driver.extraClassPath"),
        *("spark.driver.extraLibraryPath", "spark.driver.userClassPathFirst"),
        *("spark.pyspark.python", "spark.pyspark.driver.python", "spark.executorEnv.LD_PRELOAD"),
        *("spark.sql.extensions", "spark.sql.catalog.x", "spark.sql.queryExecutionListeners"),
        *("spark.sql.streaming.streamingQueryListeners", "spark.serializer"),
        *("spark.hadoop.fs.x.impl", "spark.hadoop.io.compression.codecs"),
        *("spark.sql.sources.commitProtocolClass", "spark.shuffle.sort.io.plugin.class"),
        *("spark.worker.resource.gpu.discoveryScript", "spark.metrics.conf"),
        *("spark.kubernetes.driver.podTemplateFile", "spark.sql.hive.metastore.jars"),
        *("spark.delta.logStore.s3.impl", "spark.hadoop.fs.s3a.aws.credentials.provider"),
        *("hive.exec.post.hooks", "javax.jdo.option.ConnectionURL"),
    ],
)
def test_a_setting_that_loads_code_is_refused(tmp_path: Path, name: str) -> None:
    said = refusals(tmp_path, SHOP, {"spark": {"conf": {name: "x"}}})
    assert f"{name} may load code" in said[0]


def test_a_setting_that_tunes_is_taken(tmp_path: Path) -> None:
    tuned = {
        "spark.driver.memory": "8g",
        "spark.executor.cores": 4,
        "spark.sql.shuffle.partitions": 64,
        "spark.kubernetes.container.image": "spark:4",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.dynamicAllocation.enabled": True,
    }
    assert refusals(tmp_path, SHOP, {"spark": {"conf": tuned}}) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.shuffle.manager", "evil.Manager"),
        ("spark.io.compression.codec", "evil.Codec"),
        ("spark.ui.filters", "org.good.Filter, evil.Filter"),
        ("spark.yarn.dist.jars", "/tmp/evil.jar"),
    ],
)
def test_a_setting_whose_value_is_a_class_is_refused(tmp_path: Path, name: str, value: str) -> None:
    said = refusals(tmp_path, SHOP, {"spark": {"conf": {name: value}}})
    assert f"{name} may load code" in said[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "jdbc:derby:/tmp/evil;create=true"),
        ("URL", "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://x/a.sql'"),
        ("url", "jdbc:sqlite:/etc/x"),
        ("url", "${URL:-jdbc:derby:memory:x}"),
        ("url", "jdbc:${NOTHING:-derby}:memory:x"),
        ("url", "jdbc:postgresql://db/shop?socketFactory=evil.Factory&socketFactoryArg=id"),
        ("url", "jdbc:postgresql://db/shop?sslhostnameverifier=evil"),
        ("url", "jdbc:mysql://db/shop?auto%44eserialize=true"),
        ("url", "jdbc:mysql://(host=db,queryInterceptors=evil)/shop"),
        ("driver", "org.apache.derby.jdbc.EmbeddedDriver"),
        ("connectionProvider", "evil"),
        ("socketFactory", "evil"),
        ("sslpasswordcallback", "evil"),
        ("authenticationPluginClassName", "evil"),
        ("kafka.interceptor.classes", "evil"),
        ("kafka.metric.reporters", "evil"),
        ("kafka.sasl.client.callback.handler.class", "evil"),
        ("kafka.partition.assignment.strategy", "evil.Strategy"),
        ("fs.evil.impl", "evil"),
        ("fs.s3a.aws.credentials.provider", "evil"),
        ("parquet.crypto.factory.class", "evil"),
        ("io.compression.codecs", "evil"),
    ],
)
def test_an_option_that_loads_code_is_refused(tmp_path: Path, name: str, value: str) -> None:
    for section, table in (("sources", "sales"), ("dimensions", "items")):
        config = deepcopy(SHOP)
        config[section][table]["options"] = {name: value}
        said = " ".join(refusals(tmp_path, config))
        assert f"{section}.{table}.options.{name}: " in said
        assert "load code" in said or "must name a database's server" in said


def test_an_option_that_says_how_to_read_is_taken(tmp_path: Path) -> None:
    config = deepcopy(SHOP)
    options = {
        "url": "jdbc:postgresql://${HOSTILE}:5432/shop?sslmode=require",
        "dbtable": "shop.public.Items",
        "header": True,
        "unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE",
        "timestampFormat": "dd.MM.yyyy HH.mm.SSS",
        "subscribe": "server.dbo.Customers, server.dbo.Orders",
        "subscribePattern": "a.*",
        "kafka.group.id": "shop.Loader",
        "kafka.bootstrap.servers": "b1.example.org:9092,b2:9092",
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
    }
    config["sources"]["sales"]["options"] = options
    assert refusals(tmp_path, config) == ()
    config["sources"]["sales"]["options"] = {"url": "${HOSTILE}", "driver": "${HOSTILE}"}
    assert len(refusals(tmp_path, config)) == 1, "a driver is named by nobody"


@pytest.mark.parametrize(
    "module", ["os", "subprocess", "builtins", "os.path", "sluice.spark.jars", "../x", "a;b", ""]
)
def test_a_module_that_is_not_a_users_own_is_refused(tmp_path: Path, module: str) -> None:
    assert refusals(tmp_path, SHOP, {"modules": [module]})


def refusals(folder: Path, pipeline: Config, project: Config | None = None) -> tuple[str, ...]:
    """What the loader has against it, each with its file and line."""
    config = folder / "config"
    (config / "pipelines").mkdir(parents=True, exist_ok=True)
    (config / "sluice.yaml").write_text(json.dumps(project or {}), "utf-8")
    (config / "pipelines" / "shop.yaml").write_text(json.dumps(pipeline), "utf-8")
    try:
        load(config, environ={"HOSTILE": "../.."})
    except ConfigError as error:
        return tuple(mistake for mistake in error.mistakes if ".yaml:1: " in mistake)
    return ()
