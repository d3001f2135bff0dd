"""A Spark Connect server on loopback, warm for all tasks that use it. If it ends, it is started
again.
"""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from daemons import Daemon, is_listening
from sluice.declare.project import Project
from sluice.spark.java import environment
from sluice.spark.session import local_conf

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
MEMORY = "2g"
KEEPER = Path(__file__).with_name("keep.py")
ELSEWHERE = ("SPARK_HOME", "SPARK_REMOTE")  # would make it another Spark, or a client of one


def server(project: Project, port: int, extra: Mapping[str, str]) -> Daemon:
    """Return the project's Spark as a daemon on `port`; it is ready when the port answers."""
    conf = {
        "spark.driver.memory": MEMORY,
        **local_conf(project.spark),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.app.name": "sluice-connect",
    }
    submit = str(Path(sys.executable).with_name("spark-submit"))
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    # spark-internal: the class is in Spark's own jars.
    command = [sys.executable, str(KEEPER), submit, "--class", SERVER, *settings, "spark-internal"]
    inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    environ = {**inherited, **environment(), **extra}
    return Daemon("spark-connect", command, environ, partial(is_listening, port))
