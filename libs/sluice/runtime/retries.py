"""Trying again what may succeed: at once after a lost race, after a pause where a store is down.

What has to be tried again must start from the head as it is then, so `work` plans anew each time.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from sluice.errors import LostRace, QualityStop, Retryable
from sluice.runtime.report import BatchReport

PAUSES = (1.0, 4.0, 16.0)  # seconds
_TRANSIENT = re.compile(
    r"SQLTransient|SQLRecoverable|SQLNonTransientConnection|Communications ?link|"
    r"UnknownHostException|Connection ?(refused|reset|timed out)|SocketTimeout|"
    r"SlowDown|503 Service Unavailable|FAILED_READ_FILE.FILE_NOT_EXIST",
    re.IGNORECASE,
)
_BROKEN = "[FAILED_READ_FILE"


def tried(work: Callable[[], BatchReport]) -> BatchReport:
    """What `work` returns, its warnings preceded by the faults that it was tried again after."""
    faults: list[str] = []
    for pause in (*PAUSES, None):
        try:
            done = work()
        except LostRace:
            if pause is None:
                raise
        except Retryable as fault:
            if pause is None:
                raise
            faults.append(f"tried again after {pause:g} s: {fault.message}")
            time.sleep(pause)
        else:
            return replace(done, warnings=(*faults, *done.warnings))
    raise AssertionError


@contextmanager
def naming_faults(table: str) -> Iterator[None]:
    """Retryable in place of Spark's error where a store is down, QualityStop for a broken file."""
    try:
        yield
    except Exception as error:
        told = str(error)
        line = told[max(told.find(_BROKEN), 0) :].partition("\n")[0]
        if fault := _TRANSIENT.search(told):
            raise Retryable(f"{table}: {line} ({fault[0]})") from error
        if _BROKEN in told:
            hint = "nothing of this delivery was committed; mend the file, or take it away"
            raise QualityStop(f"{table}: {line}", hint=hint) from error
        raise
