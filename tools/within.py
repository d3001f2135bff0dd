"""Run a part of the build within its limit, and print how long it took.

    python tools/within.py 20 "make test" make test

The limit is in minutes on a usual machine, and scaled to this one, but never beyond the moment in
the variable ENDS_AT (seconds since 1970), if it is set. A usual machine adds up 30 million numbers
in four seconds, and writes and reads 100,000 rows of JSON in 0.4; a virtual one may do the first
fast and the second slowly, because new memory is dear. A part that passes its limit is ended with
all of its processes; the exit code is then 124.
"""

import json
import os
import signal
import subprocess
import sys
import time
from timeit import timeit

ADDITIONS, SECONDS = 30_000_000, 4.0
ROWS, ROWS_S = 100_000, 0.4


def slowness() -> float:
    """Return how much slower this machine is now than a usual one, by the slower of its tasks."""
    tenth = timeit("total += 1", "global total; total = 0", number=ADDITIONS // 10)
    return max(tenth * 10 / SECONDS, min(_rows_s(), _rows_s()) / ROWS_S)


def _rows_s() -> float:
    """Return the CPU seconds of so many rows as objects, as a text, and as objects again."""
    start = time.process_time()
    rows = [{"id": i, "name": f"name {i}", "tags": [i, str(i)], "v": i / 7} for i in range(ROWS)]
    json.loads(json.dumps(rows))
    return time.process_time() - start


def run(minutes: float, name: str, command: list[str]) -> int:
    """Run `command` as `name`; return its exit code, or 124."""
    factor = max(slowness(), 1.0)
    left = float(os.environ.get("ENDS_AT", "inf")) - time.time()
    limit = max(min(minutes * 60 * factor, left), 0.0)
    print(f"==> {name}: at most {limit:,.0f} s here ({factor:.1f} times the usual)", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True)  # so that all of it can be ended
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"error: {name} took longer than {limit:,.0f} s", file=sys.stderr)
        code = 124
    outcome = "passed" if code == 0 else f"failed with exit code {code}"
    print(f"==> {name}: {outcome} in {time.monotonic() - start:,.0f} s of {limit:,.0f}", flush=True)
    return code


if __name__ == "__main__":
    minutes, name, *command = sys.argv[1:]
    sys.exit(run(float(minutes), name, command))
