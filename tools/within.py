"""Run a part of the build within its limit, and print how long it took.

    python tools/within.py 20 "make test" make test

The limit is in minutes on a machine that adds up 30 million numbers in four seconds, and scaled to
this machine. A part that passes it is ended with all of its processes; the exit code is then 124.
"""

import os
import signal
import subprocess
import sys
import time
from timeit import timeit

ADDITIONS, SECONDS = 30_000_000, 4.0


def slowness() -> float:
    """Return how much slower this machine is now than one that adds them up in four seconds."""
    tenth = timeit("total += 1", "global total; total = 0", number=ADDITIONS // 10)
    return tenth * 10 / SECONDS


def run(minutes: float, name: str, command: list[str]) -> int:
    """Run `command` as `name`; return its exit code, or 124."""
    factor = max(slowness(), 1.0)
    limit = minutes * 60 * factor
    figure = f"{factor * SECONDS:.1f} s for {ADDITIONS / 1e6:.0f} million additions"
    print(f"==> {name}: at most {limit:,.0f} s here ({figure})", flush=True)
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
