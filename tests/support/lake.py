"""A small lake for tests of views: real Delta tables, sources written without Spark.

What a source delivers is faked by commits to its table that carry a position, as ingestion's do;
everything behind it is the real thing.
"""

import math
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql.types import StructType

from sluice.changes import CHANGE
from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.delta.log.files import table_size
from sluice.delta.log.position import Head, Position, head
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_arrow, create
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.engine.plan import nodes_of
from sluice.files.reading import OP, POSITION
from sluice.language.names import ID, INTERVAL
from sluice.limits import Limits
from sluice.operate.verify import Verification, verify
from sluice.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Key = tuple[Any, ...]
State = Mapping[str, list[Row]]
DELIVERIES = "__deliveries"
DELIVERED = {INTERVAL: "TIMESTAMP", POSITION: "BIGINT", ID: "STRING", OP: "STRING"}
CONF = {  # tiny tables, also where a real batch would count as large
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
MODULES = "tests.support.aggregators, tests.support.scores"
HEAD = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'


class Lake:
    """One project in a folder; tables are named without their pipeline."""

    def __init__(
        self,
        folder: Path,
        declared: str,
        session: "SparkSession",
        place: str = "lake",
        **spark: Any,
    ):
        """`declared`: sources, dimensions and views as YAML; `spark`: the project's settings."""
        config = folder / "config"
        (config / "pipelines").mkdir(parents=True, exist_ok=True)
        for name, value in CONF.items():
            session.conf.set(name, value)
        settings = ", ".join(f"{name}: {value}" for name, value in {**spark, "conf": CONF}.items())
        (config / "sluice.yaml").write_text(
            f"lake: {place}\nspark: {{{settings}}}\nmodules: [{MODULES}]\n"
        )
        (config / "pipelines" / "shop.yaml").write_text(HEAD + declared)
        self.folder, self.declared, self.session = folder, declared, session
        self.limits = Limits()
        self.project = self.loaded()
        self.spark = Spark(self.project.spark)
        self.state: dict[str, dict[Key, Row]] = {}

    def loaded(self) -> Project:
        """The project as its files are now."""
        return load(self.folder / "config").model_copy(update={"limits": self.limits})

    def limit(self, **limits: float) -> Self:
        """This lake, with other limits from here on: small tables take the ways of large ones."""
        self.limits = replace(self.limits, **limits)  # type: ignore[arg-type]
        self.project = self.project.model_copy(update={"limits": self.limits})
        return self

    def here(self) -> Self:
        """This lake, with batches in this process."""
        return self.limit(**asdict(Limits()))

    def by_spark(self) -> Self:
        """This lake with batches by Spark, for which half of its tables are large."""
        sources = {table.name for table in self.project.graph.tables.values()}
        uris = [self.uri(name) for name in {*self.stored_names(), *sources}]
        sizes = sorted(table_size(uri, found.version).bytes for uri in uris if (found := head(uri)))
        return self.limit(computed_here_bytes=-1, read_here_bytes=sizes[len(sizes) // 2])

    def table(self, name: str) -> Table:
        return self.project.graph.table(name)

    def uri(self, name: str) -> str:
        return layout(self.project).uri(f"shop.{name}")

    def put(self, name: str, *rows: Row, gone: Iterable[Row] = ()) -> None:
        """One commit to a source: `rows` stand from now on, those with the keys of `gone` don't."""
        columns, key_columns = self._shape(name)
        known = self.state.setdefault(name, {})
        keyed = {_key(key_columns, row): {c: row.get(c) for c in columns} for row in rows}
        leaving = {key for row in gone if (key := _key(key_columns, row)) in known} - keyed.keys()
        changes = [{**known.pop(key), CHANGE: "delete"} for key in sorted(leaving, key=repr)]
        for key, row in keyed.items():
            if frozen(known.get(key)) != frozen(row):
                changes.append({**row, CHANGE: "update" if key in known else "insert"})
        known.update(keyed)
        self._commit(name, changes)

    def delete_all(self) -> None:
        """Every source loses all of its rows."""
        for name, rows in self.state.items():
            self.put(name, gone=list(rows.values()))

    def rows_of_sources(self) -> State:
        return {name: list(rows.values()) for name, rows in self.state.items()}

    def advance(self, *views: str, pins: Mapping[str, int] | None = None) -> list[BatchReport]:
        """Advance those views, in the order of the graph; all of them if none is named."""
        reports: list[BatchReport] = []
        for table in self._views(views):
            reports += advance(self.spark, self.project, table, Run("test", pins or {}))
        return reports

    def rows(self, name: str) -> list[Row]:
        """What readers see."""
        return [{c: row[c] for c in self.table(name).columns} for row in self.stored(name)]

    def stored(self, name: str) -> list[Row]:
        """The table as it is, hidden columns and all."""
        return stored_rows(open_table(self.uri(name)))

    def feed(self, name: str) -> list[Row]:
        """The whole change feed."""
        reader = open_table(self.uri(name)).load_cdf(starting_version=0)
        return pa.table(reader.read_all()).to_pylist()

    def head(self, name: str) -> Head:
        found = head(self.uri(name))
        assert found is not None
        return found

    def stored_names(self, *views: str) -> list[str]:
        """The Delta tables that those views are kept in."""
        return [
            node.id.removeprefix("shop.")
            for table in self._views(views)
            for node in nodes_of(table, self.project.graph)
        ]

    def exact_names(self, *views: str) -> list[str]:
        """Those of them whose rows don't depend on how they came about."""
        nodes = [n for t in self._views(views) for n in nodes_of(t, self.project.graph)]
        return [n.id.removeprefix("shop.") for n in nodes if not n.operator.has_slack]

    def filed_by(self, *views: str) -> frozenset[str]:
        """Columns that say where rows lie, which may depend on the batches they came in."""
        return frozenset(
            column
            for table in self._views(views)
            for node in nodes_of(table, self.project.graph)
            for column in node.ignored
        )

    def verdicts(self, *views: str) -> list[Verification]:
        return [v for t in self._views(views) for v in verify(self.spark, self.project, t)]

    def afresh(self, folder: Path) -> "Lake":
        """Another lake with the same sources, whose views have seen nothing yet."""
        other = Lake(folder, self.declared, self.session).limit(**asdict(self.limits))
        for name, rows in self.state.items():
            other.put(name, *rows.values())
        return other

    def copy(self, folder: Path) -> "Lake":
        """Another lake, with the same tables at the same versions."""
        shutil.copytree(self.folder, folder)
        other = Lake(folder, self.declared, self.session)
        other.state = {name: dict(rows) for name, rows in self.state.items()}
        return other.limit(**asdict(self.limits))

    def _views(self, names: tuple[str, ...]) -> list[Table]:
        kept = [t for t in self.project.graph.tables.values() if self._is_kept(t)]
        return [t for t in kept if not names or t.name in names]

    def _is_kept(self, table: Table) -> bool:
        return table.is_view or table.name + DELIVERIES in self.state

    def _shape(self, name: str) -> tuple[dict[str, str], Key]:
        """Stored columns with their types, and the key."""
        table = self.table(name.removesuffix(DELIVERIES))
        if name.endswith(DELIVERIES):
            return {**table.columns, **DELIVERED}, (INTERVAL, ID)
        return {**table.columns, **{c: table.type_of(c) for c in table.hidden}}, table.key

    def _commit(self, name: str, changes: list[Row]) -> None:
        uri, (_, key) = self.uri(name), self._shape(name)
        before = head(uri) or self._create(name)
        if not changes:
            return
        schema = pa.schema(open_table(uri).schema().to_arrow())
        rows = pa.Table.from_pylist(changes, schema.append(pa.field(CHANGE, pa.string())))
        position = Position(before.next_batch, uuid.uuid4().hex, "ingest")
        commit_arrow(before, rows, key, position)

    def _create(self, name: str) -> Head:
        columns, _ = self._shape(name)
        ddl = ", ".join(f"`{column}` {type_}" for column, type_ in columns.items())
        position = Position(0, uuid.uuid4().hex, "ingest")
        return create(self.uri(name), StructType.fromDDL(ddl), position)


NewLake = Callable[..., Lake]


def stored_rows(table: DeltaTable) -> list[Row]:
    """All rows of a version of a table, read by delta-rs, which knows rows that are marked."""
    found = QueryBuilder().register("stored", table).execute("SELECT * FROM stored")
    rows: list[Row] = pa.table(found.read_all()).to_pylist()
    return rows


@contextmanager
def without_files(lake: Lake, *names: str) -> Iterator[None]:
    """While the rows of these tables can't be read; what they are is still known."""
    with away([f for name in names for f in Path(lake.uri(name)).glob("*.parquet")]):
        yield


@contextmanager
def away(files: Iterable[Path]) -> Iterator[None]:
    """While these files can't be opened."""
    files = list(files)
    for file in files:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in files:
            file.with_suffix(".away").rename(file)


def folded(feed: Iterable[Row]) -> Counter[Any]:
    """The table that a change feed amounts to; no count is ever negative or zero."""
    total: Counter[Any] = Counter()
    for change in feed:
        comes = change["_change_type"] in ("insert", "update_postimage")
        total[frozen(data(change))] += 1 if comes else -1
    return Counter({row: n for row, n in total.items() if n})


def repeated(feed: Iterable[Row]) -> list[Any]:
    """Rows that a commit took away and brought back with the same values."""
    found = []
    sides: dict[int, tuple[Counter[Any], Counter[Any]]] = {}
    for change in feed:
        gone, come = sides.setdefault(change["_commit_version"], (Counter(), Counter()))
        comes = change["_change_type"] in ("insert", "update_postimage")
        (come if comes else gone)[frozen(data(change))] += 1
    for version, (gone, come) in sides.items():
        found += [(version, row) for row in gone & come]
    return found


def data(change: Row) -> Row:
    """A row of a feed without Delta's own columns."""
    return {c: v for c, v in change.items() if not c.startswith(("_change_type", "_commit"))}


def frozen(value: Any) -> Any:
    """A value that can be counted and compared: NaN equals NaN, -0.0 equals 0.0."""
    if isinstance(value, Mapping):
        return tuple(sorted((k, frozen(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def counted(rows: Iterable[Row]) -> Counter[Any]:
    """Rows in any order, with how often each is there."""
    return Counter(map(frozen, rows))


def _key(columns: Iterable[str], row: Row) -> Key:
    return tuple(frozen(row.get(c)) for c in columns)
