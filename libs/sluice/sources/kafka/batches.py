"""Batches of a topic that were delivered, by the offsets that each of them has read.

A batch's note names them. So a message that is read again keeps the moment at which it arrived, and
with it its place among the messages of its key.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sluice.delta.notes.intervals import Note
from sluice.errors import DeliveriesLost
from sluice.language.internal import INTERVALS, internal
from sluice.sources.kafka.client.message import Message

INSTANT = timedelta(microseconds=1)
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
        """Return the batches of that topic; of two that have read a message, the later has it.

        Raises DeliveriesLost if a note lacks the offsets of its batch.
        """
        found: dict[int, list[_Span]] = defaultdict(list)
        for note in sorted(noted, key=lambda n: n.interval.start):
            for p, (start, end) in _read(note, topic_id, table):
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
        """Return a message's moment; one that was passed over comes between its neighbours."""
        spans = self.spans[partition]
        nth = bisect_right(spans, offset, key=lambda span: span.start) - 1
        if nth < 0:
            return spans[0].at - INSTANT
        span = spans[nth]
        return span.at if offset < span.end else span.at + INSTANT


def _read(note: Note, topic_id: str, table: str) -> list[tuple[str, tuple[int, int]]]:
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
