"""Declaration of a table, and the properties that its kind gives all of its tables.

Code that iterates over tables asks for these properties, never for the kind itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sluice.declare.expectation import Expectation
from sluice.declare.text.document import Where
from sluice.declare.window import Window
from sluice.language.interval import Duration, Schedule
from sluice.language.model import Model
from sluice.language.names import Name

Section = Literal["sources", "dimensions", "views"]
JobName = Literal["ingest", "load", "advance"]
SECTIONS: tuple[Section, ...] = ("sources", "dimensions", "views")


@dataclass(frozen=True)
class Reference:
    """Reference from one table to another, by name.

    `section`: the one that must declare the other table; else it must be stored. `place`: the line
    within a longer text. `explains`: the field whose mistakes follow from an unknown name, if any.
    """

    where: Where
    name: str
    section: Section | None = None
    place: str = ""
    explains: Where = ()


class TableSpec(Model):
    """A declared table.

    `KIND`: the name of its kind, `SECTION`: where in a pipeline's file it stands, `STEP`: the
    command that brings it up to date. `HAS_STATE`: a table `<table>__state` is kept behind it.
    `QUERY`: the field that declares the whole table as a query; '' if there is none.
    `SILENT`: fields that don't count for what the table means,
    `CHOOSING`: those that don't count for its rows as they are delivered.
    `description`: every kind has this field, among its own.
    """

    LOADED: ClassVar[frozenset[str]] = frozenset({"name", "pipeline"})
    KIND: ClassVar[str]
    SECTION: ClassVar[Section]
    STEP: ClassVar[JobName] = "advance"
    IS_STORED: ClassVar[bool] = True
    IS_DELIVERED: ClassVar[bool] = False
    HAS_STATE: ClassVar[bool] = False
    QUERY: ClassVar[str] = ""
    SILENT: ClassVar[frozenset[str]] = frozenset()
    CHOOSING: ClassVar[frozenset[str]] = frozenset()

    name: Name
    pipeline: str
    if TYPE_CHECKING:
        description: str

    @classmethod
    def is_meant_by(cls, data: Mapping[str, Any]) -> bool:
        """Return whether a mapping in its section declares a table of this kind."""
        return str(data.get("kind")) == cls.KIND

    @classmethod
    def written_references(cls, data: Mapping[str, Any]) -> Iterator[Reference]:  # noqa: ARG003
        """Yield the tables that a declaration with mistakes names, if they can be read."""
        return iter(())

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations of its rows."""
        return ()

    @property
    def kept_for(self) -> Duration | None:
        """Time after which its rows expire; None if they don't."""
        return None

    @property
    def windows(self) -> Window | None:
        """Windows of its rows, by which a view over it can expire its rows."""
        return None

    @property
    def has_history(self) -> bool:
        """True if a key's past versions are stored beside the current one."""
        return False

    @property
    def caution(self) -> str:
        """Text for `plan` on batches that cost more than their changes; '' if there are none."""
        return ""

    @property
    def place(self) -> str:
        """Path of the files or of the table that it reads, if any; or ''."""
        return ""

    @property
    def names_in_files(self) -> Mapping[str, str]:
        """Names that its files give to columns, where they differ."""
        return {}

    @property
    def receives_messages(self) -> bool:
        """True if its quarantine has messages, whose key and value are encoded."""
        return False

    @property
    def only_by_spark(self) -> str:
        """Reason why only Spark can read its Delta table, and what to do; '' if others can, too."""
        return ""

    @property
    def connections(self) -> tuple[str, ...]:
        """Connections that its rows are read by."""
        return ()

    @property
    def announced(self) -> str:
        """Path of the foreign table that it reads, whose owner may announce changes; or ''."""
        return ""

    @property
    def is_by_interval(self) -> bool:
        """True if it is delivered interval by interval."""
        return False

    @property
    def expects_files(self) -> bool:
        """True if it is delivered by interval, and each interval should have files."""
        return False

    @property
    def has_backfill(self) -> bool:
        """True if the rows of a time can be read again, though it has no intervals."""
        return False

    @property
    def is_followed(self) -> bool:
        """True if its commits contain its place in a topic or a foreign table."""
        return False

    @property
    def outside(self) -> str:
        """Place of its rows as text if that is not a path of files; or ''."""
        return ""

    @property
    def delivered_beside(self) -> Mapping[str, tuple[str, ...]]:
        """Internal tables that hold rows as they were delivered, each with their key."""
        return {}

    @property
    def rows_name_inputs(self) -> bool:
        """True if its rows hold names of the tables that it reads."""
        return False

    def references(self) -> Iterator[Reference]:
        """Yield every table that the declaration names."""
        return iter(())

    def own_code(self) -> Iterator[tuple[Where, str]]:
        """Yield the users' functions and classes that the declaration names, and where."""
        return iter(())

    def check_schedule(self, schedule: Schedule) -> Iterator[tuple[Where, str]]:  # noqa: ARG002
        """Yield what conflicts with the pipeline's schedule."""
        return iter(())
