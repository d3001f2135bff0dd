"""Bring dimensions to the state of their sources: `load.py DIMENSION...`."""

from sluice.cli.jobs.load import main

if __name__ == "__main__":
    main()
