"""The common base of all operators.

An operator is the defining query of a table, cut in two at the point where rows are grouped.
`prepare` handles each input row separately and names the row's group. `combine` turns the rows of
whole groups into output rows. So the same two functions recompute everything (`query`) or only the
groups that a change touched (`recompute`), and can't disagree.

A view's rows keep the identity of the input rows from which they come. A key column that stays
visible under its own name is used directly; any other becomes a hidden column. So the input's key
breaks ties, and a changed row finds its old self.

Functions that users name in a declaration (`module:name`) are shipped by value, with the used parts
of their package, so Spark's workers don't need it. If that contains something that can't be
pickled, such as a lock, only their own module is sent, and workers must have the rest. Loading the
configuration checks which modules may be named.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.changes import Direction, balance
from sluice.declare.registry import kind
from sluice.declare.table import Table, carried_columns
from sluice.declare.table_spec import Expectation
from sluice.errors import ConfigError
from sluice.language.interval import Duration

InputRows = Mapping[str, DataFrame]
ColumnEquality = Callable[[Column, Column], Column]


@dataclass(frozen=True)
class Retention:
    """Time for which windows are kept, and the event time columns of each input.

    `end`: the column of prepared and of output rows that a window is kept by: its end, or the start
    of one that is kept from there. `first_end`: the column of prepared rows with the earliest end
    of an output row that they are part of, if that differs.
    """

    keep: Duration
    times: Mapping[str, tuple[str, ...]]
    end: str = "window_end"
    first_end: str | None = None


class Operator(ABC):
    """The query that defines one table.

    `inputs`: ids of the tables whose changes drive it. `references`: ids of tables that it looks
    up; if it `follows_references`, their changes drive it as well. `group`: columns that name a
    touched group, present in prepared and in output rows. `key`: columns that identify an output
    row. `row_wise`: each group is one input row, whose new image in the change feed suffices to
    compute the output. `mirror`: its old image also gives the old output, because only the row
    decides. `has_slack`: the table may hold more than it must, depending on its past. `untraced`:
    why the input rows of a row can't be known; else ''.
    """

    inputs: tuple[str, ...]
    references: tuple[str, ...] = ()
    follows_references: bool = False
    group: tuple[str, ...]
    key: tuple[str, ...]
    row_wise: bool = False
    mirror: bool = False
    has_slack: bool = False
    untraced: str = ""
    retention: Retention | None = None

    @property
    def weight(self) -> int:
        """Return how many times the memory of other operators its rows take without Spark."""
        return 1

    @property
    def totals(self) -> tuple[str, ...]:
        """Aggregates, as written, that sum rows and may overflow."""
        return ()

    @property
    def file_order(self) -> tuple[Direction, ...]:
        """Order of rows in the table's files, so that a read of few keys opens few."""
        return tuple(map(Direction, self.key))

    def agreements(self, output: StructType) -> Mapping[str, ColumnEquality]:
        """Return, by column, a test that two values may both be right: they depend on arrival."""
        return {}

    @abstractmethod
    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of an input or reference that it uses; others are never read."""

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        """Return columns of an input -> columns of the group with the same values.

        A row is of a touched group only if all values of one of these mappings are. None are known
        without a mapping.
        """
        return ()

    def map_to_origin(self, name: str) -> Sequence[Mapping[str, str]]:
        """Return columns of an input -> columns of an output row with the same values.

        The row comes only from rows that have all values of one of these mappings.
        """
        if type(self).prepare is Operator.prepare:
            return [{column: column for column in self.group}]
        return self.map_to_group(name)

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        """Return each row with its group; other columns of `rows` (a weight) are passed on."""
        return rows

    @abstractmethod
    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        """Return the output rows of the groups that `prepared` holds whole."""

    def query(self, snapshots: InputRows, references: InputRows) -> DataFrame:
        """Return all output rows: the defining query."""
        return self.combine({n: self.prepare(n, snapshots[n]) for n in self.inputs}, references)

    def keep_groups(self, old: DataFrame, new: DataFrame) -> DataFrame:
        """Return `new`, with what a kind keeps of groups in `old` that no input has any more."""
        return new

    def find_touched(self, changes: InputRows) -> DataFrame:
        """Return the distinct groups of every old and every new image."""
        groups = [self.prepare(n, c).select(*names(self.group)) for n, c in changes.items()]
        return union(groups).distinct()

    def recompute(
        self,
        snapshots: InputRows,
        references: InputRows,
        touched: DataFrame,
        bounds: Column | None = None,
    ) -> DataFrame:
        """Return the output rows of the touched groups, from every input.

        `bounds`: a condition that all touched groups meet, by which a scan skips files.
        """
        rows = {n: self.prepare(n, snapshots[n]) for n in self.inputs}
        if bounds is not None:
            rows = {n: r.where(bounds) for n, r in rows.items()}
        prepared = {n: within(r, touched, self.group) for n, r in rows.items()}
        return self.combine(prepared, references)


def within(rows: DataFrame, groups: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Return the rows whose group is among `groups`; null is a group like any other."""
    if not columns:
        return rows
    left, right = rows.alias("_rows"), groups.alias("_groups")
    return left.join(right, same("_rows", "_groups", columns), "left_semi")


def same(left: str, right: str, columns: tuple[str, ...]) -> Column:
    """True if two aliased sides of a join agree in `columns`; null is a value like any other."""
    pairs = [F.col(f"{left}.`{c}`").eqNullSafe(F.col(f"{right}.`{c}`")) for c in columns]
    return reduce(Column.__and__, pairs, F.lit(True))


def union(rows: list[DataFrame]) -> DataFrame:
    """Return all rows together; a column that one side lacks is null there. No shuffle."""
    return balance(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows)


def names(columns: tuple[str, ...]) -> list[Column]:
    """Return columns by name, whatever characters the names contain."""
    return [F.col(f"`{c}`") for c in columns]


def is_unique(rows: DataFrame, key: tuple[str, ...]) -> bool:
    """True if a key distinguishes all rows. Takes one Spark job."""
    return rows.groupBy(*names(key)).count().where("count > 1").isEmpty()


def passed_on(rows: DataFrame, used: tuple[str, ...]) -> list[str]:
    """Return the columns of `rows` beside those that an operator uses."""
    return [c for c in rows.columns if c not in used]


@dataclass(frozen=True)
class Maintained:
    """Table with a position of its own.

    `ignored`: columns that don't make a row differ. `parts`: fingerprints of the parts of its
    definition, if it has separate ones.
    """

    id: str
    table: Table
    operator: Operator
    definition: str
    _: KW_ONLY
    partition_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations of the rows of a view's own table; sources have their gate."""
        is_visible = self.table.is_view and self.id == self.table.id
        return self.table.expect if is_visible else ()


def hidden_columns(view: Table, source: Table, present: Collection[str]) -> list[Column]:
    """Return the carried columns that are neither in the view nor in `present`."""
    pairs = carried_columns(view, source).items()
    return [
        F.col(f"`{name}`").alias(out)
        for out, name in pairs
        if out not in view.columns and out not in present
    ]


def import_object(reference: str, where: str) -> Any:
    """Return the object of `module:name`; ConfigError, beginning with `where`, if there is none."""
    module_name, _, name = reference.partition(":")
    try:
        module = import_module(module_name)
        found = getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            [f"{where}: {error}"],
            hint="the module must be importable where Sluice runs: install it, or name its "
            "folder in PYTHONPATH",
        ) from error
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    package = import_module(module_name.partition(".")[0])
    if package is not module:
        _ship(package, found)
    return found


def _ship(package: ModuleType, found: Any) -> None:
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    try:
        cloudpickle.dumps(found)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whatever it is, workers may have it
        cloudpickle.unregister_pickle_by_value(package)  # type: ignore[no-untyped-call]


@runtime_checkable
class Unstored(Protocol):
    """Kind whose tables are not stored."""

    def compute_rows(self, table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """Return a table's rows, given the rows of its inputs by id."""


def unstored_rows(table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a table that is not stored, given those of its inputs by id."""
    unstored = kind(table.kind)
    assert isinstance(unstored, Unstored)
    return unstored.compute_rows(table, inputs)
