"""Compare tables with a recompute at the versions that they reflect: `verify.py VIEW...`."""

from sluice.cli.jobs.verify import main

if __name__ == "__main__":
    main()
