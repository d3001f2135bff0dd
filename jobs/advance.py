"""Bring views up to their inputs: `advance.py VIEW...`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["advance"])
