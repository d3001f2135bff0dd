"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["load"])
