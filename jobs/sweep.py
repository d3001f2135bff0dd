"""Check the expectations of whole tables: `sweep.py TABLE...`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["sweep"])
