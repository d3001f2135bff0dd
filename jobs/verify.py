"""Compare tables with a recompute at the versions that they reflect: `verify.py VIEW...`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["verify"])
