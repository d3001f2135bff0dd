"""Check the expectations of whole tables: `sweep.py TABLE...`."""

from sluice.cli.jobs.sweep import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
