"""Show what a run would do, and commit nothing: `preview.py TABLE... --start T --end T`."""

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(JOBS["preview"])
