"""Kafka's client: a topic's state, and its messages between given offsets.

Partitions are assigned with explicit offsets. There is no consumer group, and nothing is committed
to the brokers; the table's own commit is the record.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.errors import HistoryLost, Retryable, UsageError
from sluice.extras import require
from sluice.language.interval import Duration
from sluice.sources.kafka.connection import client_settings
from sluice.sources.kafka.place import Found, Offsets
from sluice.sources.kafka.spec import Topic

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient, OffsetSpec

EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
ANSWER_S = 15.0
AT_ONCE = 5_000  # messages of one call
QUIET = {"log_level": "0", "enable.metrics.push": "false"}
FETCHES = {  # what the client holds, unless the connection says otherwise
    "queued.max.messages.kbytes": "32768",
    "fetch.message.max.bytes": "4194304",
    "fetch.max.bytes": "8388608",
}
OWN = {
    "group.id": "sluice",  # the client wants one; no group is joined
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}


class Message(NamedTuple):
    """One message; its time is in milliseconds.

    `left_out`: bytes of its key and value if they are more than a message may have.
    """

    partition: int
    offset: int
    at: int
    key: bytes | None
    value: bytes | None
    left_out: int = 0

    @property
    def moment(self) -> datetime:
        return EPOCH + self.at * MILLISECOND


_message = partial(tuple.__new__, Message)  # a third of the time of Message(...)


@dataclass
class Taken:
    """Messages of one batch, in the order of each partition, and the offsets after them."""

    following: dict[int, int]
    messages: list[Message] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class Brokers:
    """The brokers of a topic, as one source reads it."""

    table: str
    topic: Topic
    settings: Mapping[str, str]
    answer_s: float = ANSWER_S

    @classmethod
    def of(cls, table: str, topic: Topic) -> "Brokers":
        """Return the brokers that the topic's connection names. Asks nobody yet."""
        require("kafka", f"{table}, a Kafka topic,")
        return cls(table, topic, client_settings(topic.connection, table))

    def describe(self) -> Found:
        """Return the topic's state. Raises UsageError without such a topic, Retryable unheard."""
        from confluent_kafka import TopicCollection
        from confluent_kafka.admin import OffsetSpec

        admin = self._admin()
        topic = self._answer(admin.describe_topics(TopicCollection([self.topic.topic])))
        cluster = self._result(admin.describe_cluster(request_timeout=self.answer_s))
        partitions = [p.id for p in topic.partitions]
        return Found(
            str(cluster.cluster_id),
            self.topic.topic,
            str(topic.topic_id),
            self._offsets(admin, partitions, OffsetSpec.earliest()),
            self._offsets(admin, partitions, OffsetSpec.latest()),
        )

    def since(self, moment: datetime, found: Found) -> Offsets:
        """Return each partition's first offset of a message at or after a moment, or its end."""
        from confluent_kafka.admin import OffsetSpec

        at = OffsetSpec.for_timestamp(ceil((moment - EPOCH) / MILLISECOND))
        offsets = self._offsets(self._admin(), found.following, at)
        return {p: offset if offset >= 0 else found.following[p] for p, offset in offsets.items()}

    def read(self, start: Offsets, end: Offsets) -> Generator[Taken]:
        """Yield the messages of `[start, end)` in batches of the topic's bounds.

        A batch without messages moves over offsets that compaction or transactions left empty. One
        that takes longer than `max_wait` ends with what has come.
        """
        due = {p for p, offset in start.items() if offset < end[p]}
        if not due:
            return
        with self._consumer() as consumer:
            consumer.assign(self._partitions({p: start[p] for p in due}))
            following = dict(start)
            while due:
                taken = Taken(dict(following))
                self._fill(consumer, taken, due, end)
                following = taken.following
                yield taken

    def times(self, start: Offsets, end: Offsets) -> dict[int, int]:
        """Return the time of the first message in `[start, end)` of each partition that has one.

        Times are in milliseconds.
        """
        bounds = {"max_rows": 1, "max_wait": Duration(f"{self.answer_s:g} seconds")}
        one_by_one = replace(self, topic=self.topic.model_copy(update=bounds))
        due = {p for p, offset in start.items() if offset < end[p]}
        found: dict[int, int] = {}
        for taken in one_by_one.read(start, end):
            for message in taken.messages:
                found.setdefault(message.partition, message.at)
            if due <= found.keys():
                break
        return found

    def _fill(self, consumer: "Consumer", taken: Taken, due: set[int], end: Offsets) -> None:
        topic, longest = self.topic, self.topic.max_wait.timedelta.total_seconds()
        began = heard = time.monotonic()
        while due and len(taken.messages) < topic.max_rows and taken.bytes < topic.max_bytes:
            if taken.messages and time.monotonic() - began > longest:
                return  # the next batch continues here
            most = min(AT_ONCE, topic.max_rows - len(taken.messages))
            events = consumer.consume(most, timeout=1.0)
            if events:
                heard = time.monotonic()
                self._take(events, taken, due, end)
            elif time.monotonic() - heard > longest:
                raise Retryable(
                    f"{self.table}: the brokers were silent for {topic.max_wait.text}",
                    hint="what was committed stands; the next run continues from there. On a slow "
                    "link one answer may take longer: give the connection a smaller "
                    "`fetch.message.max.bytes`, or the source a longer `max_wait`",
                )

    def _take(self, events: Sequence[Any], taken: Taken, due: set[int], end: Offsets) -> None:
        """Take events over; a batch has a million of them, so each costs as few calls as can be."""
        following, most = taken.following, self.topic.max_message_bytes
        for event in events:
            partition, offset = event.partition(), event.offset()
            if error := event.error():
                self._check(error)
                offset = end[partition]  # the partition's end
            if partition not in due:
                continue
            if offset >= end[partition]:
                due.discard(partition)
                following[partition] = end[partition]
                continue
            key, value, at = event.key(), event.value(), event.timestamp()[1]
            size = (len(key) if key else 0) + (len(value) if value else 0)
            is_whole = size <= most
            found = (partition, offset, at, key, value, 0)
            taken.messages.append(_message(found if is_whole else (*found[:3], None, None, size)))
            taken.bytes += size if is_whole else 0
            following[partition] = offset + 1
            if offset + 1 >= end[partition]:
                due.discard(partition)

    def _check(self, error: "KafkaError") -> None:
        """Raise what an event reports, unless it is the end of a partition."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 # its public name
            return
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            raise HistoryLost(
                f"{self.table}: {self.topic.topic} lost messages while it was read: {error.str()}",
                hint="run it again: it reports from where the topic can be read, and the choices",
            )
        raise Retryable(f"{self.table}: {self.topic.topic}: {error.str()}")

    def _offsets(
        self, admin: "AdminClient", partitions: Iterable[int], wanted: "OffsetSpec"
    ) -> Offsets:
        from confluent_kafka import IsolationLevel

        asked = dict.fromkeys(self._partitions(dict.fromkeys(partitions, 0)), wanted)
        is_committed = self.topic.isolation == "read_committed"
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        found = admin.list_offsets(asked, isolation_level=level, request_timeout=self.answer_s)
        return {each.partition: self._result(answer).offset for each, answer in found.items()}

    def _partitions(self, offsets: Offsets) -> list[Any]:
        from confluent_kafka import TopicPartition

        return [TopicPartition(self.topic.topic, p, offset) for p, offset in offsets.items()]

    def _answer(self, futures: Mapping[str, Any]) -> Any:
        return self._result(futures[self.topic.topic])

    def _result(self, future: Any) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return future.result(self.answer_s)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise UsageError(
                    f"{self.table}: there is no topic {self.topic.topic}",
                    hint="create it, or correct `kafka.topic`",
                ) from None
            raise self._unheard(error.str()) from failure
        except TimeoutError as late:
            raise self._unheard(f"no answer within {self.answer_s:g} s") from late

    def _unheard(self, why: str) -> Retryable:
        return Retryable(
            f"{self.table}: the brokers of the connection {self.topic.connection!r} don't answer: "
            f"{why}"
        )

    def _admin(self) -> "AdminClient":
        from confluent_kafka.admin import AdminClient

        return AdminClient({**QUIET, **self.settings})

    @contextmanager
    def _consumer(self) -> Iterator["Consumer"]:
        from confluent_kafka import Consumer

        isolation = {"isolation.level": self.topic.isolation}
        consumer = Consumer({**QUIET, **FETCHES, **self.settings, **OWN, **isolation})
        try:
            yield consumer
        finally:
            consumer.close()
