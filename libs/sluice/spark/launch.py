"""Print the settings and the environment that start Spark for a project, as JSON.

This is for callers that may not import Spark. `python -m sluice.spark.launch --config DIR`
prints `{"conf": ..., "environ": ...}`. `conf` has the settings that spark-submit or a Spark Connect
server needs, `environ` the environment of its process.
"""

import argparse
import json
import sys

from sluice.declare.project import load
from sluice.errors import SluiceError
from sluice.spark.java import environment
from sluice.spark.session import local_conf


def main() -> int:
    """Print both; return 2 after a message if the configuration, Java or the jars are wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default="config")
    try:
        project = load(parser.parse_args().config)
        told = {"conf": local_conf(project.spark), "environ": environment()}
    except SluiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
