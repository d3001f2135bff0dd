"""The one tree of errors that a user of Sluice can meet.

Each error reports what was found and where. Its hint is the next step, and its exit code shows a
scheduler whether a retry can help.

    SluiceError
    ├── Differs              1  a table differs from the result of its query
    ├── ConfigError          2  the configuration can't be used as it is
    ├── UsageError           2  a command or a call got something that it can't take
    │   ├── IntervalError    2  bounds that the schedule's grid does not have
    │   ├── UnknownTable     2  a name that no table of the project has
    │   ├── NoSuchRow        2  a row of which a server can explain nothing
    │   ├── TooManyChanges   2  a version with more changes than a server puts in order
    │   ├── UnreadableFile   2  a file of which `init` can read nothing
    │   └── NotBuilt         2  a table that no run has built yet
    ├── MissingDependency    2  Java, jars or a driver that this machine lacks
    ├── StoreRefused         2  an object store that refuses, or can't keep tables safe
    ├── NewerLake            2  a lake that a newer release has written in another format
    ├── SeveralFailed        *  several tables of a run failed; the exit code is that of the worst
    ├── Retryable            3  a transient fault: the same call may succeed later
    │   ├── LostRace         3  another writer was first; nothing of this attempt was kept
    │   ├── Unforeseen       3  a batch failed in a way that Sluice has no name for
    │   └── SnapshotExpired  3  a file of the version being read was vacuumed meanwhile
    ├── QualityStop          4  a delivery can't be accepted; the table is unchanged
    │   └── DamagedFile      4  a file of it turned out to be damaged while it was read
    └── HistoryLost          5  an input's past can't be read any more; an operator must decide
        ├── DamagedLog       5  a table's log can't be read
        ├── MissingFiles     5  files of a table's newest version are gone
        ├── LogCleaned       5  unread commits were cleaned from a log
        ├── FeedVacuumed     5  unread files of a change feed were deleted
        ├── ColumnsChanged   5  a column was removed or changed its type meanwhile
        ├── ForeignCommit    5  somebody else changed a table's rows or columns, or restored it
        ├── TableAltered     5  somebody else changed a setting that a table requires
        ├── InputReplaced    5  another table has taken an input's place
        ├── InputBehind      5  an input is older than what was read of it
        ├── InputRewritten   5  an input was restored, and others have written on from there
        └── DeliveriesLost   5  a source was restored without the notes of its deliveries
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of jobs, read by their scheduler."""

    OK = 0
    DIFFERENCES = 1
    CONFIGURATION = 2
    RETRY = 3
    QUALITY = 4
    HISTORY = 5


# Order of several failures: first those that need a person most, last those that a retry may fix.
WORST_FIRST = (
    ExitCode.HISTORY,
    ExitCode.CONFIGURATION,
    ExitCode.QUALITY,
    ExitCode.DIFFERENCES,
    ExitCode.RETRY,
)


class SluiceError(Exception):
    """Base of all errors: a message, and a `hint` about what to do.

    `is_kept`: it is noted in the lake as a failed batch, until a batch of the table succeeds.
    """

    exit_code = ExitCode.CONFIGURATION
    is_kept = True

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ConfigError(SluiceError):
    """All mistakes of a configuration at once, each as `file:line: what`."""

    def __init__(self, mistakes: Sequence[str], *, hint: str = "") -> None:
        super().__init__("\n".join(mistakes), hint=hint)
        self.mistakes = tuple(mistakes)


class UsageError(SluiceError):
    """An argument that is unknown or invalid."""


class MissingDependency(SluiceError):
    """Something that must be installed first."""


class Retryable(SluiceError):
    """A fault that may have passed by the next attempt."""

    exit_code = ExitCode.RETRY


class LostRace(Retryable):
    """A commit lost to another writer; this attempt's work was discarded."""


class Unforeseen(Retryable):
    """An unforeseen failure of a batch."""


class StoreRefused(SluiceError):
    """An object store that refuses a request for good, or in which commits would not be safe."""


class NewerLake(SluiceError):
    """A lake whose format is newer than those that this release knows."""


class SeveralFailed(SluiceError):
    """Failures of several tables in one run, the worst first, each with its hint.

    Tables that failed for the same reason share a message.
    """

    def __init__(self, errors: Mapping[str, SluiceError]) -> None:
        self.errors = dict(errors)
        super().__init__("\nerror: ".join(_by_reason(errors)))
        codes = {error.exit_code for error in errors.values()}
        self.exit_code = next(code for code in WORST_FIRST if code in codes)


def _by_reason(errors: Mapping[str, SluiceError]) -> Iterator[str]:
    tables: dict[str, list[str]] = defaultdict(list)
    for table, error in sorted(errors.items(), key=lambda e: WORST_FIRST.index(e[1].exit_code)):
        tables[str(error)].append(table)
    for reason, failed in tables.items():
        yield reason if failed[0] in reason else f"{', '.join(sorted(failed))}: {reason}"


class Differs(SluiceError):
    """A table that differs from its recompute."""

    exit_code = ExitCode.DIFFERENCES


class QualityStop(SluiceError):
    """A batch that breaks an expectation marked `stop`, or would empty what it replaces."""

    exit_code = ExitCode.QUALITY


class DamagedFile(QualityStop):
    """A delivered file whose head could be read, but not all of its rows."""


class HistoryLost(SluiceError):
    """Changes between a recorded position and today that can't be read."""

    exit_code = ExitCode.HISTORY


class LogCleaned(HistoryLost):
    """Commits after a recorded position that were cleaned from the log."""


class FeedVacuumed(HistoryLost):
    """Files of the change feed after a recorded position that were deleted."""


class ColumnsChanged(HistoryLost):
    """A change feed that is unreadable because a column was removed or changed its type."""


class ForeignCommit(HistoryLost):
    """A table's rows that Sluice has not written: from a write, an overwrite or a restore."""


class TableAltered(HistoryLost):
    """A table not set up as Sluice made it: without a feed, append-only, or unreadable for some."""


class InputReplaced(HistoryLost):
    """An input that was dropped and created again: its versions are not those recorded."""


class InputBehind(HistoryLost):
    """An input that lacks versions already read, as after a restored backup."""


class InputRewritten(HistoryLost):
    """An input whose versions are not those that were read: restored, then written again."""


class DeliveriesLost(HistoryLost):
    """A source's table that lacks deliveries, because it alone was restored to an older state."""
