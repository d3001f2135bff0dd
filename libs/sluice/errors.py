"""The one tree of errors that a user of Sluice can meet.

Each error says what was found and where; its hint says what to do next; its exit code tells a
scheduler whether a retry can help.

    SluiceError
    ├── Differs              1  a table is not what its query gives
    ├── ConfigError          2  the configuration can't be used as it is
    ├── UsageError           2  a command or a call was given something it can't take
    │   ├── IntervalError    2  bounds that the schedule's grid does not have
    │   ├── UnknownTable     2  a name that no table of the project has
    │   └── NotBuilt         2  a table that no run has made yet
    ├── MissingDependency    2  Java, jars or a driver that this machine lacks
    ├── SeveralFailed        *  several tables of a run failed; the exit code is that of the worst
    ├── Retryable            3  a transient fault: the same call may succeed later
    │   ├── LostRace         3  another writer was first; nothing of this attempt was kept
    │   ├── Unforeseen       3  a batch failed in a way that Sluice has no name for
    │   └── SnapshotExpired  3  a file of the version being read was vacuumed meanwhile
    ├── QualityStop          4  what was delivered can't be taken; nothing was committed
    └── HistoryLost          5  an input's past can't be read any more, an operator has to decide
        ├── LogCleaned       5  commits that were still to be read are gone from a log
        ├── FeedVacuumed     5  files of a change feed that were still to be read are gone
        ├── ColumnsChanged   5  a column was taken away or changed its type meanwhile
        ├── ForeignCommit    5  somebody else changed a table's rows or columns, or restored it
        ├── TableAltered     5  somebody else changed a setting that a table can't go on without
        ├── CheckpointLost   5  a stream no longer knows what it has read
        ├── InputReplaced    5  another table lies where an input was
        ├── InputBehind      5  an input is older than what was read of it
        ├── InputRewritten   5  an input was put back, and others have written on from there
        └── DeliveriesLost   5  a source was put back, but not the notes of its deliveries
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """What a job tells its scheduler."""

    OK = 0
    DIFFERENCES = 1
    CONFIGURATION = 2
    RETRY = 3
    QUALITY = 4
    HISTORY = 5


# Of several failures: what needs a person most comes first, what a retry may mend comes last.
WORST_FIRST = (
    ExitCode.HISTORY,
    ExitCode.CONFIGURATION,
    ExitCode.QUALITY,
    ExitCode.DIFFERENCES,
    ExitCode.RETRY,
)


class SluiceError(Exception):
    """What went wrong, and (`hint`) what to do about it."""

    exit_code = ExitCode.CONFIGURATION

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ConfigError(SluiceError):
    """Every mistake of a configuration at once, each as `file:line: what`."""

    def __init__(self, mistakes: Sequence[str], *, hint: str = "") -> None:
        super().__init__("\n".join(mistakes), hint=hint)
        self.mistakes = tuple(mistakes)


class UsageError(SluiceError):
    """An argument that names nothing, or can't be read."""


class MissingDependency(SluiceError):
    """Something that must be installed first."""


class Retryable(SluiceError):
    """A fault that may have gone by the next attempt."""

    exit_code = ExitCode.RETRY


class LostRace(Retryable):
    """Another writer committed first; this attempt's work was thrown away."""


class Unforeseen(Retryable):
    """A batch's failure that nobody foresaw."""


class SeveralFailed(SluiceError):
    """Failures of several tables of a run, the worst first, each with its hint.

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
        yield reason if failed[0] in reason else f"{', '.join(failed)}: {reason}"


class Differs(SluiceError):
    """A table that is not equal to its recompute."""

    exit_code = ExitCode.DIFFERENCES


class QualityStop(SluiceError):
    """The batch breaks an expectation marked `stop`, or would empty what it replaces."""

    exit_code = ExitCode.QUALITY


class HistoryLost(SluiceError):
    """The changes between a recorded position and today can't be read."""

    exit_code = ExitCode.HISTORY


class LogCleaned(HistoryLost):
    """Commits after a recorded position were cleaned from the log."""


class FeedVacuumed(HistoryLost):
    """Files of the change feed after a recorded position were deleted."""


class ColumnsChanged(HistoryLost):
    """A change feed can't be read across a column that went or changed its type."""


class ForeignCommit(HistoryLost):
    """A table's rows are not those that Sluice has written: a write, an overwrite, a restore."""


class TableAltered(HistoryLost):
    """A table is not set up as Sluice made it: without a feed, append-only, unreadable for some."""


class CheckpointLost(HistoryLost):
    """A stream's checkpoint is gone, and reading all anew would count rows twice."""


class InputReplaced(HistoryLost):
    """An input was dropped and made anew: its versions are not those that were recorded."""


class InputBehind(HistoryLost):
    """An input lacks versions that were read of it, as after a restored backup."""


class InputRewritten(HistoryLost):
    """An input's versions are not those that were read: it was put back and written again."""


class DeliveriesLost(HistoryLost):
    """A source's table lacks what was delivered to it: an older state was put back alone."""
