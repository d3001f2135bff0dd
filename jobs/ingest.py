"""Ingest sources and load dimensions: `ingest.py SOURCE... DIMENSION... --start T --end T`."""

from sluice.cli.jobs.ingest import main

if __name__ == "__main__":
    main()
