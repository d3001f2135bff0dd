"""A Kafka broker for the tests and the demo: Apache's server in one process, on loopback.

Its jars are those of `broker_jars.txt`, fetched once into the cache and checked by their SHA-256.
The data is in a temporary folder. It can be stopped and started again on the same ports.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

from ports import free_port
from sluice.cache import cache_folder
from sluice.errors import SluiceError
from sluice.spark.jars import Jar, fetch, has_jars
from sluice.spark.java import java_home

LIST = Path(__file__).with_name("broker_jars.txt")
STARTS_WITHIN_S = 240
JAVA = (
    *("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),  # starts sooner
)
PROPERTIES = """\
process.roles={roles}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
advertised.listeners={advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,\
SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=500
log.segment.delete.delay.ms=100
broker.heartbeat.interval.ms=500
broker.session.timeout.ms={session}
"""
SECURED = """\
sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
"""


class NoBroker(SluiceError):
    """Failure of a broker to start."""


Message = tuple[bytes | None, bytes | None]  # key and value


def _cluster() -> str:
    """Return a cluster's id; one with a leading dash would be an option to Kafka's tool."""
    return urlsafe_b64encode(b"K" + secrets.token_bytes(15)).decode()[:22]


@dataclass(frozen=True)
class Secured:
    """Further listeners: one wants a login by SCRAM, one TLS with certificates of both sides.

    `keystore` holds the broker's certificate with its key, and `truststore` the authority that
    issues those of clients, both as PEM.
    """

    user: str
    password: str
    keystore: Path
    truststore: Path
    login_port: int = field(default_factory=free_port)
    tls_port: int = field(default_factory=free_port)

    @property
    def listeners(self) -> list[str]:
        ports = {"SASL_PLAINTEXT": self.login_port, "SSL": self.tls_port}
        return [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]

    @property
    def properties(self) -> str:
        return SECURED.format(keystore=self.keystore, truststore=self.truststore)

    @property
    def formatting(self) -> tuple[str, str]:
        """Options that make the user known before the broker starts."""
        login = f"name={self.user},password={self.password}"
        return "--add-scram", f"SCRAM-SHA-256=[{login}]"


@dataclass
class Broker:
    """One broker; `cluster` is the id that it was formatted with.

    `advertised`: the port for clients, if a proxy forwards another one. `data`: the folder of its
    messages, if not its own. `node`: its number in the cluster; only the first one is its
    controller. `session_s`: how long the controller waits for a broker before others lead instead;
    one that is killed can't come back earlier, and on a busy machine a living one may be slow.
    """

    folder: Path
    port: int
    controller: int
    advertised: int = 0
    data: Path | None = None
    cluster: str = field(default_factory=_cluster)
    node: int = 1
    session_s: int = 60
    process: subprocess.Popen[bytes] | None = None
    secured: Secured | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connection(self) -> str:
        """Return the text of an Airflow connection to it."""
        return json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": self.servers}})

    def create(self) -> None:
        more = self.secured.listeners if self.secured else []
        listeners = [f"PLAINTEXT://127.0.0.1:{self.port}", *more]
        advertised = [f"PLAINTEXT://127.0.0.1:{self.advertised or self.port}", *more]
        if self.node == 1:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.controller}")
        places = {
            "roles": "broker,controller" if self.node == 1 else "broker",
            "node": self.node,
            "listeners": ",".join(listeners),
            "controller": self.controller,
            "advertised": ",".join(advertised),
            "data": self.data or self.folder / "data",
            "session": self.session_s * 1000,
        }
        further = self.secured.properties if self.secured else ""
        self._properties.write_text(PROPERTIES.format(**places) + further)
        format_ = ("kafka.tools.StorageTool", "format", "-t", self.cluster, "-c", self._properties)
        users = self.secured.formatting if self.secured else ()
        subprocess.run(self._java(*map(str, format_), *users), check=True, capture_output=True)

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
        """Return the client, which is kept, because a discarded one would lose pending answers."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def topic(
        self, name: str, partitions: int = 1, nodes: Sequence[int] = (1,), **config: str
    ) -> str:
        """Create a topic, led by the first of some nodes; `retention_ms` sets retention.ms.

        Old messages stay, unless a setting removes them.
        """
        given = {key.replace("_", "."): value for key, value in config.items()}
        settings = {"retention.ms": "-1", **given}
        where = [list(nodes)] * partitions
        new = NewTopic(name, partitions, replica_assignment=where, config=settings)
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
        return sorted(self._described(topic).partitions)

    def leader(self, topic: str) -> int:
        """Return the node that leads a topic's first partition."""
        leader: int = self._described(topic).partitions[0].leader
        return leader

    def log_size(self, topic: str) -> int:
        """Return the number of remaining messages, by reading them."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "t", "enable.partition.eof": True}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        count = 0
        while not (event := consumer.poll(10)).error():
            count += event is not None
        consumer.close()
        return count

    def _described(self, topic: str) -> TopicMetadata:
        """Ask any broker, because the kept client's controller may be gone."""
        return self.admin.list_topics(topic, timeout=30).topics[topic]

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
def running(
    port: int = 0,
    advertised: int = 0,
    data: Path | None = None,
    secured: Secured | None = None,
    session_s: int = Broker.session_s,
) -> Iterator[Broker]:
    """Yield a broker without topics."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-kafka-"))
    ports = port or free_port(), free_port()
    broker = Broker(folder, *ports, advertised, data, secured=secured, session_s=session_s)
    with _started(broker):
        yield broker


@contextmanager
def joined(first: Broker) -> Iterator[Broker]:
    """Yield a second broker of a cluster."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-kafka-"))
    given = {"cluster": first.cluster, "node": 2}
    with _started(Broker(folder, free_port(), first.controller, **given)) as broker:
        yield broker


@contextmanager
def _started(broker: Broker) -> Iterator[Broker]:
    try:
        broker.create()
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(broker.folder)


def jars() -> Path:
    """Return the folder of the broker's jars, fetching them first if one is missing."""
    folder = cache_folder(os.environ) / "kafka"
    listed = [line.split() for line in LIST.read_text().splitlines()]
    every = [Jar(name, version, int(size), sha, org) for org, name, version, size, sha in listed]
    if not has_jars(folder, every):
        fetch(folder, every, os.environ)
    return folder
