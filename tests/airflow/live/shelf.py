"""A shelf of notes, delivered in many small pieces: what upkeep has something to do for.

`digest`, a pipeline of its own, counts them; while it is paused it needs what it has yet to read.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

SHELF = """
pipeline: shelf
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-05-01
airflow: {retries: 1, retry_delay: 1 second, webhook: "${SLUICE_WEBHOOK:-}"}
sources:
  notes:
    path: "${SLUICE_LANDING:-landing}/notes/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, who STRING, at TIMESTAMP
    time: at
    expect:
      - {type: expect_column_values_to_be_unique, column: id, over: table}
views:
  recent:
    kind: window_store
    from: notes
    key: [who]
    time: at
    duplicates: true
    retention: 7 days
"""
DIGEST = """
pipeline: digest
schedule: assets
airflow: {webhook: "${SLUICE_WEBHOOK:-}"}
views:
  counts:
    kind: cogroup
    key: [who]
    streams: {notes: {from: shelf.notes, aggregates: {notes: count(*)}}}
"""
FIRST = date(2024, 3, 1)
RETENTION = timedelta(days=7)
WRITERS = ("ada", "bob")
Note = tuple[int, str, datetime]


def day(nth: int) -> date:
    return FIRST + timedelta(days=nth)


@dataclass
class Shelf:
    """What was delivered to it so far, and what its tables are to be."""

    landing: Path
    notes: dict[date, list[Note]] = field(default_factory=dict)

    def deliver(self, nth: int, late: Iterable[int] = ()) -> None:
        """A day's notes, one of that day by each writer, and one of each day that is `late`."""
        days = [nth, nth, *late]
        made = [self._note(nth * 100 + n, of) for n, of in enumerate(days)]
        self.notes[day(nth)] = made
        file = self.landing / "notes" / f"{day(nth)}" / "a.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps({"id": i, "who": w, "at": at.isoformat()}) for i, w, at in made)
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    @property
    def every(self) -> list[Note]:
        return [note for notes in self.notes.values() for note in notes]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many notes each has written."""
        return Counter(who for _, who, _ in self.every)

    @property
    def recent(self) -> set[int]:
        """The notes of the last seven days, by the newest note."""
        horizon = max(at for *_, at in self.every)
        return {number for number, _, at in self.every if at > horizon - RETENTION}

    def _note(self, number: int, nth: int) -> Note:
        noon = datetime.combine(day(nth), datetime.min.time(), UTC) + timedelta(hours=12)
        return number, WRITERS[number % 2], noon
