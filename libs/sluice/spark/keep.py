"""Keep a program running: `python -m sluice.spark.keep COMMAND...` starts it again when it has
ended. If it ends within ten seconds of its start, it is not restarted, and its exit code is passed
on. A request to end first ends the program.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

LEAST = 10.0
PAUSE = 1.0


def main(command: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Run the program; return its exit code if it can't be kept running."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        began = time.monotonic()
        with subprocess.Popen(command, env=environ) as program:
            try:
                code = program.wait()
            except BaseException:
                program.terminate()
                raise
        if time.monotonic() - began < LEAST:
            return code
        print(f"{command[0]} ended with {code} and is started again", flush=True)
        time.sleep(PAUSE)  # or be asked to end, like the program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
