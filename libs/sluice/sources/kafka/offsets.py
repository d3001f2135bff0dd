"""Offsets of a topic: the place that a source has reached, and those that each batch has read.

The commit of a batch holds its place. It names the cluster and the topic by their ids, because a
topic that was deleted and created again counts its offsets from zero. `following` is each
partition's first offset that was not read.

The note of a batch names the offsets that it has read. So a message that is read again keeps the
moment at which it arrived, and with it its place among the messages of its key.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sluice.delta.intervals import Note
from sluice.delta.log.position import Head
from sluice.delta.places.lake_layout import table_at
from sluice.errors import DeliveriesLost, HistoryLost, InputBehind, InputReplaced
from sluice.language.interval import INSTANT
from sluice.language.names import INTERVALS, internal
from sluice.sources.kafka.records import Message

Offsets = Mapping[int, int]


@dataclass(frozen=True)
class TopicDescription:
    """A topic as its brokers describe it: the first and the next offset of each partition."""

    cluster: str
    topic: str
    topic_id: str
    first: Offsets
    following: Offsets


@dataclass(frozen=True)
class OffsetRange:
    """Offsets that were read, `[start, following)` of each partition, and the moment of the batch.

    `gaps`: offsets that were passed over by request, as (partition, from, to).
    """

    cluster: str
    topic: str
    topic_id: str
    start: Offsets
    following: Offsets
    at: datetime | None = None
    gaps: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def beginning(cls, description: TopicDescription, *, latest: bool) -> "OffsetRange":
        """Return the place of a source that has read nothing."""
        offsets = dict(description.following if latest else description.first)
        return cls(description.cluster, description.topic, description.topic_id, offsets, offsets)

    @classmethod
    def of(cls, head: Head | None) -> "OffsetRange | None":
        """Return the place that a table's newest commit holds."""
        plain = head.position.topic if head and head.position else {}
        if head is None or not plain:
            return None
        if "cluster" not in plain:
            table = table_at(head.uri)
            raise InputReplaced(f"{table} was filled from a different place", hint=_choice(table))
        at = datetime.fromisoformat(plain["at"]) if plain["at"] else None
        gaps = tuple((p, start, end) for p, start, end in plain.get("gaps", ()))
        start, following = (
            {int(p): offset for p, offset in plain[name].items()} for name in ("from", "to")
        )
        return cls(plain["cluster"], plain["topic"], plain["id"], start, following, at, gaps)

    def to_dict(self) -> dict[str, Any]:
        """Return the place for a commit."""
        return {
            "cluster": self.cluster,
            "topic": self.topic,
            "id": self.topic_id,
            "from": {str(p): offset for p, offset in sorted(self.start.items())},
            "to": {str(p): offset for p, offset in sorted(self.following.items())},
            "at": self.at.isoformat() if self.at else None,
            **({"gaps": [list(gap) for gap in self.gaps]} if self.gaps else {}),
        }

    def check(self, description: TopicDescription, table: str) -> None:
        """Raise HistoryLost unless the topic still has all messages from here on."""
        for faults in (self._find_other, self._find_loss, self._find_expiry):
            if lost := faults(description):
                kind, what = lost
                raise kind(f"{table}: {what}", hint=_choice(table))

    def can_read(self, description: TopicDescription, partition: int, offset: int) -> bool:
        """True if the topic still has what that offset was when this place was reached."""
        is_same = (self.cluster, self.topic_id) == (description.cluster, description.topic_id)
        return is_same and description.first.get(partition, offset + 1) <= offset

    def with_new_partitions(self, description: TopicDescription) -> "OffsetRange":
        """Return the place with partitions that were added to the topic, from their beginning."""
        return replace(self, following={**description.first, **self.following})

    def lag(self, description: TopicDescription) -> dict[int, int]:
        """Return an upper bound of each partition's unread messages."""
        return {
            p: end - max(self.following.get(p, 0), description.first.get(p, 0))
            for p, end in description.following.items()
        }

    def moved_to(self, description: TopicDescription, *, latest: bool) -> "OffsetRange":
        """Return the place at the topic's beginning or end; note the messages between as a gap."""
        target = dict(description.following if latest else description.first)
        is_same = (self.cluster, self.topic_id) == (description.cluster, description.topic_id)
        old = self.following if is_same else {}
        skipped = tuple(
            (p, start, target[p])
            for p, start in sorted({**dict.fromkeys(target, 0), **old}.items())
            if p in target and start < target[p]
        )
        moved = OffsetRange.beginning(description, latest=latest)
        return replace(moved, at=self.at, gaps=(*self.gaps, *skipped))

    def _find_other(self, description: TopicDescription) -> tuple[type[HistoryLost], str] | None:
        if self.cluster != description.cluster:
            now, before = description.cluster, self.cluster
            return InputReplaced, f"its brokers are now of the cluster {now}, no longer of {before}"
        if (self.topic, self.topic_id) != (description.topic, description.topic_id):
            return InputReplaced, f"the topic {description.topic} was deleted and created again"
        return None

    def _find_loss(self, description: TopicDescription) -> tuple[type[HistoryLost], str] | None:
        for p, offset in sorted(self.following.items()):
            end = description.following.get(p)
            if end is None or end < offset:
                what = f"partition {p} of {self.topic} was read up to offset {offset}, but ends at"
                return InputBehind, f"{what} {end or 0}: its brokers have lost messages"
        return None

    def _find_expiry(self, description: TopicDescription) -> tuple[type[HistoryLost], str] | None:
        for p, offset in sorted(self.following.items()):
            if offset < (first := description.first[p]):
                what = f"partition {p} of {self.topic} was read up to offset {offset}, but begins"
                return HistoryLost, f"{what} at {first} now: retention has deleted the rest"
        return None


def _choice(table: str) -> str:
    return (
        f"nothing was changed; `sluice rebuild {table} --as-landed` replaces the rows by all that "
        f"the topic still has; `sluice rebuild {table} --from earliest` (or latest) keeps them, "
        "continues there and notes the gap"
    )


SHOWN = 80  # characters of a note shown in a message
NOTHING = '{"id":"","read":{}}'  # the fingerprint of no batch


class _Span(NamedTuple):
    """Offsets `[start, end)` of a partition, and the moment of the batch that has read them."""

    start: int
    end: int
    at: datetime


@dataclass(frozen=True)
class Batches:
    """Spans of each partition in order of their offsets; none overlap."""

    spans: Mapping[int, list[_Span]]

    @classmethod
    def of(cls, noted: Iterable[Note], topic_id: str, table: str) -> "Batches":
        """Return the batches of that topic.

        A message that two batches have read belongs to the later. Raises DeliveriesLost if a note
        lacks the offsets of its batch.
        """
        found: dict[int, list[_Span]] = defaultdict(list)
        for note in sorted(noted, key=lambda n: n.interval.start):
            for p, (start, end) in _noted_offsets(note, topic_id, table):
                spans = found[int(p)]
                while spans and spans[-1].start >= start:
                    spans.pop()
                if spans and spans[-1].end > start:
                    spans[-1] = spans[-1]._replace(end=start)
                spans.append(_Span(start, end, note.interval.start))
        return cls(found)

    def by_moment(self, messages: Iterable[Message]) -> dict[datetime, list[Message]]:
        """Return messages by the moments that they keep, in order."""
        found: dict[datetime, list[Message]] = defaultdict(list)
        for message in messages:
            found[self._moment(message.partition, message.offset)].append(message)
        return dict(sorted(found.items()))

    def _moment(self, partition: int, offset: int) -> datetime:
        spans = self.spans[partition]
        nth = bisect_right(spans, offset, key=lambda span: span.start) - 1
        if nth < 0:
            return spans[0].at - INSTANT
        span = spans[nth]
        return span.at if offset < span.end else span.at + INSTANT


def _noted_offsets(note: Note, topic_id: str, table: str) -> list[tuple[str, tuple[int, int]]]:
    """Return the offsets that a batch has read of that topic, by partition."""
    try:
        noted = json.loads(note.files)
        read = [(p, (int(start), int(end))) for p, (start, end) in noted["read"].items()]
        return read if noted["id"] == topic_id else []
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DeliveriesLost(
            f"{table}: the record of the batch of {note.interval.start.isoformat()} in "
            f"{internal(table, INTERVALS)} does not say which offsets it has read: an earlier "
            f"Sluice wrote it: {note.files[:SHOWN]!r}",
            hint=f"run `sluice rebuild {table} --as-landed`: it takes all that the topic still has "
            "and notes it again; backfills work from then on",
        ) from None


def fingerprint(place: Mapping[str, Any]) -> str:
    """Return what a batch has read, for its note; without a message, where its topic ended."""
    read = {p: (start, place["to"][p]) for p, start in place["from"].items()}
    moved = {p: span for p, span in read.items() if span[0] < span[1]}
    return json.dumps({"id": place["id"], "read": moved or read}, separators=(",", ":"))
