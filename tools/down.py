"""`make down`: stops what `make up` started, and all that it started."""

import sys

from daemons import Daemons
from stack import HOME


def main() -> int:
    """Stops it, whatever state it is in."""
    daemons = Daemons(HOME / "run")
    running = daemons.running()
    daemons.stop()
    (HOME / "stack.json").unlink(missing_ok=True)
    print(f"stopped {', '.join(running)}" if running else "nothing was running")
    return 0


if __name__ == "__main__":
    sys.exit(main())
