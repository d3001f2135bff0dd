"""Compare tables with a recompute at the versions that they reflect: `verify.py VIEW...`."""

from sluice.cli.jobs.verify import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
