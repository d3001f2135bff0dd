"""Kafka's client: a topic's state, and its messages between given offsets.

Partitions are assigned with explicit offsets. There is no consumer group, and nothing is committed
to the brokers; the table's commit is the record.

A client never gives up, but reconnects forever. So Sluice checks its connection errors while it
waits for an answer, and a refusal ends the wait at once.
"""

import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sluice.errors import HistoryLost, Retryable, UsageError
from sluice.extras import require
from sluice.language.interval import EPOCH, Duration
from sluice.sources import Topic
from sluice.sources.kafka.connection import client_settings
from sluice.sources.kafka.offsets import Offsets, TopicDescription
from sluice.sources.kafka.records import (
    COLUMNS,
    MILLISECOND,
    arrange_events,
    bytes_of,
    each_message,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient, OffsetSpec

LOOKED_S = 0.1  # between checks of the faults
REFUSED = re.compile(
    r"SASL authentication error|mechanism handshake failed|certificate verify failed|"
    r"alert [a-z ]*(certificate|unknown ca)"
)

ANSWER_S = 15.0
AT_ONCE = 5_000  # messages of one call
QUIET = {"log_level": "0", "enable.metrics.push": "false"}
FETCHES = {  # the client's buffers, unless the connection sets them
    "queued.max.messages.kbytes": "16384",
    "fetch.message.max.bytes": "1048576",
    "fetch.max.bytes": "8388608",
    "fetch.queue.backoff.ms": "10",  # a full queue is emptied faster than in the usual second
}
OWN = {
    "group.id": "sluice",  # required by the client; no group is joined
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}


@dataclass
class PolledMessages:
    """Messages of one batch, in the order of each partition, and the offsets after them."""

    following: dict[int, int]
    parts: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.parts))

    @property
    def messages(self) -> pa.Table:
        return pa.Table.from_batches(self.parts, COLUMNS)


@dataclass(frozen=True)
class Brokers:
    """The brokers of a topic, as one source reads it."""

    table: str
    topic: Topic
    settings: Mapping[str, str]
    answer_s: float = ANSWER_S
    faults: "list[KafkaError]" = field(default_factory=list, compare=False)  # of connections

    @classmethod
    def of(cls, table: str, topic: Topic) -> "Brokers":
        """Return the brokers that the topic's connection names. Asks nobody yet."""
        require("kafka", f"{table}, a Kafka topic,")
        return cls(table, topic, client_settings(topic, table))

    def describe(self) -> TopicDescription:
        """Return the topic's state.

        Raises UsageError without such a topic, Retryable without an answer.
        """
        from confluent_kafka import TopicCollection
        from confluent_kafka.admin import OffsetSpec

        admin = self._admin()
        topics = admin.describe_topics(TopicCollection([self.topic.topic]))
        topic = self._result(admin, topics[self.topic.topic])
        cluster = self._result(admin, admin.describe_cluster(request_timeout=self.answer_s))
        partitions = [p.id for p in topic.partitions]
        return TopicDescription(
            str(cluster.cluster_id),
            self.topic.topic,
            str(topic.topic_id),
            self._offsets(admin, partitions, OffsetSpec.earliest()),
            self._offsets(admin, partitions, OffsetSpec.latest()),
        )

    def since(self, moment: datetime, description: TopicDescription) -> Offsets:
        """Return each partition's first offset of a message at or after a moment, or its end."""
        from confluent_kafka.admin import OffsetSpec

        at = OffsetSpec.for_timestamp(ceil((moment - EPOCH) / MILLISECOND))
        offsets = self._offsets(self._admin(), description.following, at)
        return {
            p: offset if offset >= 0 else description.following[p] for p, offset in offsets.items()
        }

    def read(self, start: Offsets, end: Offsets) -> Generator[PolledMessages]:
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
                polled = PolledMessages(dict(following))
                self._fill(consumer, polled, due, end)
                following = polled.following
                yield polled

    def times(self, start: Offsets, end: Offsets) -> dict[int, int]:
        """Return the time of the first message in `[start, end)` of each partition that has one.

        Times are in milliseconds.
        """
        bounds = {"max_rows": 1, "max_wait": Duration(f"{self.answer_s:g} seconds")}
        singly = replace(self, topic=self.topic.model_copy(update=bounds))
        due = {p for p, offset in start.items() if offset < end[p]}
        found: dict[int, int] = {}
        for taken in singly.read(start, end):
            for message in each_message(taken.messages):
                found.setdefault(message.partition, message.at)
            if due <= found.keys():
                break
        return found

    def _fill(
        self, consumer: "Consumer", polled: PolledMessages, due: set[int], end: Offsets
    ) -> None:
        topic, longest = self.topic, self.topic.max_wait.timedelta.total_seconds()
        began = heard = time.monotonic()
        while due and polled.count < topic.max_rows and polled.bytes < topic.max_bytes:
            if polled.count and time.monotonic() - began > longest:
                return  # the next batch continues here
            most = min(AT_ONCE, topic.max_rows - polled.count)
            events = consumer.consume(most, timeout=1.0)
            if events and self._take(events, polled, due, end):
                heard = time.monotonic()
            elif time.monotonic() - heard > longest:
                raise Retryable(
                    f"{self.table}: the brokers were silent for {topic.max_wait.text}",
                    hint="earlier commits remain; the next run continues from there. On a slow "
                    "link one answer may take longer: give the connection a smaller "
                    "`fetch.message.max.bytes`, or the source a longer `max_wait`",
                )

    def _take(
        self, events: Sequence[Any], polled: PolledMessages, due: set[int], end: Offsets
    ) -> bool:
        """Take the messages of partitions that are due; return False if there are none."""
        from confluent_kafka import Message as Event

        before = dict(polled.following)
        errors = list(map(Event.error, events))
        sent = [event for event, error in zip(events, errors, strict=True) if error is None]
        found = arrange_events(sent, self.topic.max_message_bytes)
        partitions, offsets = (found.column(name).to_numpy() for name in ("partition", "offset"))
        is_taken = np.zeros(len(found), np.bool_)
        for p in due.intersection(np.unique(partitions).tolist()):
            own = partitions == p
            is_taken |= own & (offsets < end[p])
            self._reach(int(offsets[own][-1]) + 1, p, polled, due, end)
        found = found if is_taken.all() else found.filter(pa.array(is_taken))
        if len(found):
            polled.parts.append(found)
            polled.bytes += bytes_of(found)
        for event, error in zip(events, errors, strict=True):
            if error is not None:
                self._check(error)
                self._reach(event.offset(), event.partition(), polled, due, end)
        return polled.following != before

    def _reach(
        self, offset: int, p: int, polled: PolledMessages, due: set[int], end: Offsets
    ) -> None:
        """Move on to an offset; the end that a follower or a new leader sees may be too early."""
        polled.following[p] = max(polled.following[p], min(offset, end[p]))
        if offset >= end[p]:
            due.discard(p)

    def _check(self, error: "KafkaError") -> None:
        """Raise what an event reports, unless it is the end of a partition."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 # its public name
            return
        self._check_refused(error)
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
        return {
            each.partition: self._result(admin, answer).offset for each, answer in found.items()
        }

    def _partitions(self, offsets: Offsets) -> list[Any]:
        from confluent_kafka import TopicPartition

        return [TopicPartition(self.topic.topic, p, offset) for p, offset in offsets.items()]

    def _admin(self) -> "AdminClient":
        from confluent_kafka.admin import AdminClient

        with self._check_settings():
            return AdminClient({**QUIET, **self.settings, "error_cb": self.faults.append})

    @contextmanager
    def _consumer(self) -> Iterator["Consumer"]:
        from confluent_kafka import Consumer

        isolation = {"isolation.level": self.topic.isolation}
        with self._check_settings():
            consumer = Consumer({**QUIET, **FETCHES, **self.settings, **OWN, **isolation})
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def _check_settings(self) -> Iterator[None]:
        """Raise UsageError if the client refuses its settings."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            yield
        except (KafkaException, TypeError) as refused:
            fault = refused.args[0]
            why = fault.str() if isinstance(fault, KafkaError) else fault
            raise UsageError(
                f"{self.table}: the Kafka client rejects the settings {self.topic.brokers}: {why}",
                hint="correct its extra fields, which are settings of librdkafka",
            ) from refused

    def _result(self, admin: "AdminClient", future: Any) -> Any:
        """Return an answer. Raises UsageError for a missing topic, Retryable without an answer."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return self._await(admin, future)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise UsageError(
                    f"{self.table}: there is no topic {self.topic.topic}",
                    hint="create it, or correct `kafka.topic`",
                ) from None
            raise self._report_silence(admin, error.str()) from failure
        except TimeoutError as late:
            raise self._report_silence(admin, f"no answer within {self.answer_s:g} s") from late

    def _check_refused(self, fault: "KafkaError") -> None:
        """Raise UsageError if a login or a certificate was refused, by either side."""
        why = fault.str()
        if not REFUSED.search(why) or "Local:" in why:
            return  # the connection may only have been interrupted
        raise UsageError(
            f"{self.table}: can't log in to the brokers {self.topic.brokers}: {why}",
            hint="correct its login and password, or the settings of SASL and TLS among its "
            "extra fields",
        )

    def _await(self, admin: "AdminClient", future: Any) -> Any:
        """Return an answer, unless no broker is left to give it."""
        last = time.monotonic() + self.answer_s
        while (left := last - time.monotonic()) > 0:
            with suppress(TimeoutError):
                return future.result(min(left, LOOKED_S))
            admin.poll(0)
            if any(map(_is_of_all, self.faults)):
                for fault in self.faults:
                    self._check_refused(fault)
        return future.result(0)

    def _report_silence(self, admin: "AdminClient", why: str) -> Retryable:
        """Return the error of brokers that don't answer, with the last fault of a connection."""
        admin.poll(0)
        last = next((f"; {each.str()}" for each in self.faults[::-1] if not _is_of_all(each)), "")
        return Retryable(
            f"{self.table}: the brokers {self.topic.brokers} don't answer: {why}{last}"
        )


def _is_of_all(fault: "KafkaError") -> bool:
    """True if the fault means that no broker at all can be reached, not only one of them."""
    from confluent_kafka import KafkaError

    return bool(fault.code() == KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 # its public name
