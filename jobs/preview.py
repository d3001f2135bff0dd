"""Show what a run would do, and commit nothing: `preview.py TABLE... --start T --end T`."""

from sluice.cli.jobs.preview import main
from sluice.terminal.program import run

if __name__ == "__main__":
    run(main)
