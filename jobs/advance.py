"""Bring views up to their inputs: `advance.py VIEW...`."""

from sluice.cli.jobs.advance import main

if __name__ == "__main__":
    main()
