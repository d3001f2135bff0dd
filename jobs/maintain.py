"""Maintain tables without changing a visible row: `maintain.py TABLE...`."""

from sluice.cli.jobs.maintain import main

if __name__ == "__main__":
    main()
