"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

from sluice.cli.jobs.load import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
