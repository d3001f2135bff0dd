"""The jobs as one program: `python -m sluice.cli.jobs advance VIEW...`."""

import click

from sluice.cli.job import JOBS
from sluice.terminal import run

if __name__ == "__main__":
    run(click.Group(commands=dict(JOBS)))
