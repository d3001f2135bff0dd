"""A Kafka broker for the tests and the demo: Apache's server in one process, on loopback.

Its jars are those of `broker_jars.txt`, fetched once into the cache and checked by their SHA-256.
The data lie in a temporary folder. It can be stopped and started again on the same ports.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluice.cache import cache_folder
from sluice.errors import SluiceError
from sluice.spark.jars import Jar, fetch, has_jars
from sluice.spark.java import java_home

LIST = Path(__file__).with_name("broker_jars.txt")
STARTS_WITHIN_S = 60
JAVA = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=500
log.segment.delete.delay.ms=100
"""


class NoBroker(SluiceError):
    """A broker that does not start."""


Message = tuple[bytes | None, bytes | None]  # key and value


def _cluster() -> str:
    """Make a cluster's id; one that began with a dash would be an option to Kafka's tool."""
    return urlsafe_b64encode(b"K" + secrets.token_bytes(15)).decode()[:22]


@dataclass
class Broker:
    """One broker; `cluster` is the id that it was formatted with.

    `advertised`: the port at which clients find it, if that is another's, which hands on to it.
    `data`: where its messages lie, if not in its folder.
    """

    folder: Path
    port: int
    controller: int
    advertised: int = 0
    data: Path | None = None
    cluster: str = field(default_factory=_cluster)
    process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connection(self) -> str:
        """The text of an Airflow connection to it."""
        return json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": self.servers}})

    def create(self) -> None:
        places = {
            "port": self.port,
            "controller": self.controller,
            "advertised": self.advertised or self.port,
            "data": self.data or self.folder / "data",
        }
        self._properties.write_text(PROPERTIES.format(**places))
        format_ = ("kafka.tools.StorageTool", "format", "-t", self.cluster, "-c", self._properties)
        subprocess.run(self._java(*map(str, format_)), check=True, capture_output=True)

    def start(self) -> None:
        """Start it, and return once it answers."""
        with (self.folder / "log").open("ab") as log:
            command = self._java("kafka.Kafka", str(self._properties))
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        last = time.monotonic() + STARTS_WITHIN_S
        while not self._answers():
            if self.process.poll() is not None:
                raise NoBroker(f"the broker ended: {(self.folder / 'log').read_text()[-3000:]}")
            if time.monotonic() > last:
                raise NoBroker(f"the broker does not answer within {STARTS_WITHIN_S} s")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    @cached_property
    def admin(self) -> AdminClient:
        """The client, kept: the answers that a discarded one owes never come."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Create a topic; `retention_ms` is its setting retention.ms.

        Messages of long ago stay, unless a setting says otherwise.
        """
        given = {key.replace("_", "."): value for key, value in config.items()}
        settings = {"retention.ms": "-1", **given}
        new = NewTopic(name, partitions, 1, config=settings)
        self.admin.create_topics([new])[name].result()
        return name

    def drop(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result()

    def cut(self, name: str, offset: int, partition: int = 0) -> None:
        """Delete the messages before an offset, as retention does."""
        found = self.admin.delete_records([TopicPartition(name, partition, offset)])
        for each in found.values():
            each.result()

    def send(
        self,
        topic: str,
        messages: Iterable[Message],
        partition: int = 0,
        at: int = 0,
        **config: Any,
    ) -> None:
        """Send messages, and return once the broker has them; `at`: their time in milliseconds."""
        producer = Producer({"bootstrap.servers": self.servers, **config})
        is_transaction = "transactional.id" in config
        if is_transaction:
            producer.init_transactions()
            producer.begin_transaction()
        for key, value in messages:
            producer.produce(topic, value, key, partition, timestamp=at)
            producer.poll(0)
        assert producer.flush(30) == 0
        if is_transaction:
            producer.commit_transaction()

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions."""
        found = self.admin.describe_topics(TopicCollection([topic]))[topic].result()
        return [p.id for p in found.partitions]

    def log_size(self, topic: str) -> int:
        """Return the number of messages that are still there, by reading them."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "t", "enable.partition.eof": True}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        count = 0
        while not (event := consumer.poll(10)).error():
            count += event is not None
        consumer.close()
        return count

    def _answers(self) -> bool:
        try:
            self.admin.describe_cluster(request_timeout=1).result()
        except Exception:  # noqa: BLE001 # it is still starting
            return False
        return True

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _java(self, *arguments: str) -> list[str]:
        return [str(java_home() / "bin" / "java"), *JAVA, "-cp", f"{jars()}/*", *arguments]


@contextmanager
def running(port: int = 0, advertised: int = 0, data: Path | None = None) -> Iterator[Broker]:
    """Yield a broker without topics."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-kafka-"))
    broker = Broker(folder, port or free_port(), free_port(), advertised, data)
    try:
        broker.create()
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder)


def jars() -> Path:
    """Return the folder of the broker's jars, fetching them first if one is missing."""
    folder = cache_folder(os.environ) / "kafka"
    listed = [line.split() for line in LIST.read_text().splitlines()]
    every = [Jar(name, version, int(size), sha, org) for org, name, version, size, sha in listed]
    if not has_jars(folder, every):
        fetch(folder, every, os.environ)
    return folder


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
