"""Places where a test kills the process, as a power cut would.

`SLUICE_FAILPOINT=committed:top_products` sends SIGKILL to the process when it passes that place;
`#3` behind it means the third time. Nothing else arms it; unarmed it costs one look-up.
"""

import os
import signal
from collections import Counter

VARIABLE = "SLUICE_FAILPOINT"
_passed: Counter[str] = Counter()


def passing(place: str, table: str) -> None:
    """Die here, if this place is armed. `table` is an id, a path or a URI: its last name counts."""
    armed = os.environ.get(VARIABLE)
    if not armed:
        return
    name, _, nth = armed.partition("#")
    here = f"{place}:{table.rstrip('/').replace('.', '/').rpartition('/')[2]}"
    if name == here:
        _passed[here] += 1
        if _passed[here] >= int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)
