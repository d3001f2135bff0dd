"""Bring views up to their inputs: `advance.py VIEW...`."""

from sluice.cli.jobs.advance import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
