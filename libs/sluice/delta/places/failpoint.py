"""Places where a test kills or stops the process, like a lack of memory or a long pause.

`SLUICE_FAILPOINT=committed:top_products` sends SIGKILL to the process when it passes that place.
`committed:top_products#3` does so at the third passing, `*#17` at the seventeenth place on the way.
`committed:top_products!STOP` sends SIGSTOP. Standard error reports the place. Nothing else arms a
place; an unarmed one costs one look-up.
"""

import os
import signal
import sys
import threading
from collections import Counter

VARIABLE = "SLUICE_FAILPOINT"
_passed: Counter[str] = Counter()


def passing(place: str, table: str) -> None:
    """End the process here if this place is armed.

    `table` is an id, a path or a URI; only its last name counts.
    """
    armed = os.environ.get(VARIABLE)
    if not armed:
        return
    where, _, name = armed.partition("!")
    wanted, _, nth = where.partition("#")
    here = f"{place}:{table.rstrip('/').replace('.', '/').rpartition('/')[2]}"
    if wanted in (here, "*"):
        _passed[armed] += 1
        if _passed[armed] == int(nth or 1):
            print(f"{VARIABLE}: {here}", file=sys.stderr, flush=True)
            # To this thread: another one that takes the signal would stop it only a moment later.
            signal.pthread_kill(threading.get_ident(), signal.Signals[f"SIG{name or 'KILL'}"])
