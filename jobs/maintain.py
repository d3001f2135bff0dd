"""Maintain tables without changing a visible row: `maintain.py TABLE...`."""

from sluice.cli.jobs.maintain import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
