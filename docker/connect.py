"""Spark Connect server with the project's settings, on every address of its container.

The protocol has no login: anybody who reaches the port can read and write the lake, so only the
services of the deployment share its network.
"""

import os

from sluice.declare.project import load
from sluice.spark.java import environment
from sluice.spark.session import local_conf

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def main() -> None:
    """Replace this process by the server."""
    conf = {
        **local_conf(load(os.environ["SLUICE_CONFIG"]).spark),
        "spark.connect.grpc.binding.address": "0.0.0.0",
        "spark.connect.grpc.binding.port": os.environ["SLUICE_PORT"],
        "spark.driver.host": os.environ["HOSTNAME"],
        "spark.driver.bindAddress": "0.0.0.0",
    }
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = ["spark-submit", "--class", SERVER, *settings, "spark-internal"]
    os.execvpe(command[0], command, {**os.environ, **environment()})


if __name__ == "__main__":
    main()
