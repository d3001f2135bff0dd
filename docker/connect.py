"""Spark Connect server with the project's settings, on every address of its container.

The protocol has no login: anybody who reaches the port can read and write the lake, so only the
services of the deployment share its network.
"""

import os

from sluice.declare.project import load
from sluice.spark.connect_server import command


def main() -> None:
    """Replace this process by the server."""
    everywhere = {
        "spark.connect.grpc.binding.address": "0.0.0.0",
        "spark.driver.host": os.environ["HOSTNAME"],
        "spark.driver.bindAddress": "0.0.0.0",
    }
    settings = load(os.environ["SLUICE_CONFIG"]).spark
    words, environ = command(settings, int(os.environ["SLUICE_PORT"]), everywhere)
    os.execvpe(words[0], words, environ)


if __name__ == "__main__":
    main()
