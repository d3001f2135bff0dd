"""Elements of a spark-pipelines project: datasets, and the flows that fill them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlglot import exp

DatasetKind = Literal["materialized view", "streaming table", "temporary view", "sink"]
FullName = tuple[str, str, str]  # catalog, database, name; only the name of a temporary view
CATALOG, DATABASE = "spark_catalog", "default"


@dataclass(frozen=True)
class Place:
    """A line of a file; `file` is relative to the project's folder."""

    file: str
    line: int


@dataclass(frozen=True)
class Defaults:
    """Catalog and database of names that leave them out."""

    catalog: str = CATALOG
    database: str = DATABASE

    def of(self, name: str) -> FullName:
        """Return the full name that a text means."""
        return self.complete([part.name for part in exp.to_table(name, dialect="spark").parts])

    def complete(self, parts: Sequence[str]) -> FullName:
        """Return the full name of one, two or three parts."""
        *before, name = (part.lower() for part in parts)
        database = before.pop() if before else self.database
        return (before.pop() if before else self.catalog, database, name)

    def name(self, text: str, kind: DatasetKind) -> FullName:
        """Return the full name of a dataset; temporary views and sinks have no database."""
        is_stored = kind in ("materialized view", "streaming table")
        return self.of(text) if is_stored else ("", "", self.of(text)[2])


@dataclass(frozen=True)
class Dataset:
    """A dataset as defined. `schema`: its declared columns, as DDL."""

    name: FullName
    kind: DatasetKind
    place: Place
    comment: str = ""
    schema: str = ""


@dataclass(frozen=True)
class Changes:
    """Rules by which a flow of changes is applied: lists of the protocol's expressions."""

    keys: tuple[Any, ...]
    sequence: tuple[Any, ...]
    deletes: tuple[Any, ...] = ()
    columns: tuple[Any, ...] = ()
    except_columns: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Query:
    """A flow: a plan, the text of a query, or changes (`cdc`) of the table `source`.

    `lines`: the file's lines of a text. `refusal`: why its DataFrame can't be described at all.
    """

    place: Place
    defaults: Defaults
    name: str = ""
    target: FullName = ("", "", "")
    relation: Any = None
    text: str = ""
    lines: tuple[str, ...] = ()
    source: str = ""
    cdc: Changes | None = None
    refusal: str = ""


@dataclass
class Elements:
    """All that a project's files define, with the mistakes found in them."""

    datasets: dict[FullName, Dataset] = field(default_factory=dict)
    flows: list[Query] = field(default_factory=list)
    mistakes: list[tuple[Place, str]] = field(default_factory=list)

    def defaults(self, spec: Any) -> Defaults:
        """Return the defaults that a spec gives."""
        return Defaults((spec.catalog or CATALOG).lower(), (spec.database or DATABASE).lower())

    def add(self, dataset: Dataset) -> None:
        """Add a dataset; a second one of its name is a mistake."""
        if first := self.datasets.get(dataset.name):
            known = f"{first.place.file}:{first.place.line}"
            problem = f"{dataset.name[-1]!r} is defined in {known} already"
            self.mistakes.append((dataset.place, problem))
        else:
            self.datasets[dataset.name] = dataset
