"""Check the expectations of whole tables: `sweep.py TABLE...`."""

from sluice.cli.jobs.sweep import main

if __name__ == "__main__":
    main()
