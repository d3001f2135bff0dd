"""Ingest sources and load dimensions: `ingest.py SOURCE... DIMENSION... --start T --end T`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["ingest"])
