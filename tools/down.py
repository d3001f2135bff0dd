"""`make down`: stop everything that `make up` has started, directly or indirectly."""

import sys

from daemons import Daemons
from stack import HOME


def main() -> int:
    """Stop it in any state."""
    daemons = Daemons(HOME / "run")
    running = daemons.running()
    daemons.stop()
    (HOME / "stack.json").unlink(missing_ok=True)
    print(f"stopped {', '.join(running)}" if running else "nothing was running")
    return 0


if __name__ == "__main__":
    sys.exit(main())
