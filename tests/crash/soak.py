"""Hours of random histories, killed at random, compared with what they must end in.

    PYTHONPATH=tools python -m tests.crash.soak --minutes 60 --kills 200 --seed 7 --store seaweedfs

Each step of a history is run by processes that are killed on the way, at a named place or at any
time, or stopped until another has done the work. Some leave all batches to Spark, others none that
they can compute. Then it is mended by running once more, and every table must be as a model in
plain Python has it, and whoever had it open must still see its old rows; one more run must add no
version. At its end the lake must have the same canonical hashes as another that was delivered
everything in one undisturbed run, and `verify` must agree. What is found is written down with its
seed and step, and the lake is kept. The exit code says whether there was anything.

With `--store`, lakes and landing folders lie on a server of the tests.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.crash.bazaar import MARKING, Bazaar, History, Reader, Step
from tests.crash.conftest import Pool, Worker
from tests.crash.model import DAY, Model, counted
from tests.support.servers import SERVERS
from tests.support.stores import using

import sluice
from sluice.declare.stores import faults
from sluice.delta.places.folders import remove
from sluice.language.interval import Interval

STEPS = 12  # of a history
PASSED = 40  # places that the run of a step passes, or so
PATIENCE = 240.0  # seconds, before a process counts as stuck
BY_SPARK = 0.4  # of the attempts, and of the runs that mend them
COMMITTERS = ("auto", MARKING, "spark")
BY_BATCH = "shop.priced"  # which keeps the prices of the run that joined it
RETRIED = {"LostRace"}  # what a run may end in that another has overtaken

Key = tuple[str, str]
IsOver = Callable[[], bool]
Prefix = Callable[[], str]  # what names of another lake begin with


@dataclass
class Record:
    """What was done and found."""

    seed: int
    store: str = ""
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0
    histories: int = 0
    steps: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    survived: int = 0
    recovery_seconds: list[float] = field(default_factory=list)
    divergences: list[dict[str, Any]] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """How many processes were killed; those that were stopped and woken not among them."""
        return self.kills["at a place"] + self.kills["at any time"]

    def to_json(self) -> str:
        told = {**vars(self), "killed": self.killed, "recovery": self.recovery()}
        return json.dumps(told, indent=2)

    def recovery(self) -> dict[str, float]:
        """Seconds of the run that mends."""
        if len(self.recovery_seconds) < 2:
            return {}
        found = statistics.quantiles(self.recovery_seconds, n=20)
        most = max(self.recovery_seconds)
        return {"median": round(found[9], 1), "p95": round(found[18], 1), "most": round(most, 1)}

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kills.items()))
        lines = [
            f"seed {self.seed}, {self.seconds / 60:.0f} minutes from {self.started}",
            f"lakes on {self.store or 'a disk'}",
            f"{self.histories} histories of {self.steps} steps, {self.killed} kills ({kinds})",
            f"at {len(self.places)} places; {self.survived} runs were not caught",
            f"recovery in seconds: {self.recovery()}",
            f"{len(self.divergences)} divergences",
        ]
        return "\n".join([*lines, *(f"  {found}" for found in self.divergences)])


@dataclass
class Soak:
    """One session: processes, a lake at a time, and the record."""

    folder: Path
    record: Record
    pool: Pool
    steady: Worker
    kept: Path
    prefix: Prefix
    began: float = field(default_factory=time.monotonic)

    def history(self, number: int, is_over: IsOver) -> None:
        """One history; it ends where it diverges."""
        seed = f"{self.record.seed}-{number}"
        chance, at = random.Random(f"{seed}-kills"), self.folder / str(number)
        prefix = self.prefix()
        commit = chance.choice(committers(prefix))
        lake, model, seen = Bazaar.create(at / "lake", prefix, commit), Model(), set[Key]()
        self.record.histories += 1
        for nth, step in enumerate(self._steps(seed, is_over)):
            self.record.steps += 1
            readers = lake.readers()
            lake.land(step)
            model.take(step)
            found = self._disturbed(lake, step, chance) or self._mended(lake, step)
            found = found or unlike(model, lake) or disturbed(readers)
            found = found or missed(model, lake, seen, chance)
            self.write()
            if found:
                told = {"history": seed, "step": nth, "commit": commit, "found": found}
                self._keep(at, told, lake)
                return
        calm = Bazaar.create(at / "calm", self.prefix(), commit, model.definition)
        if found := self._ended(lake, calm, model):
            told = {"history": seed, "step": "end", "commit": commit, "found": found}
            self._keep(at, told, lake, calm)
        self.write()
        for one in (lake, calm):
            remove(one.root)

    def _ended(self, lake: Bazaar, calm: Bazaar, model: Model) -> list[str]:
        """Where the lake is not what its queries give, or not as one undisturbed run makes it."""
        if said := self._done(lake, Step({}, (), "verify")):
            return [said]
        days = tuple(Interval(start, start + DAY) for start in sorted(model.sales))
        whole = Step(model.files, days)
        calm.land(whole)
        if said := self._done(calm, whole):
            return [said]
        mine, theirs = lake.state(), calm.state()
        differing = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
        return [f"{n}: {mine.get(n)} is not {theirs.get(n)}" for n in differing if n != BY_BATCH]

    def _steps(self, seed: str, is_over: IsOver) -> Iterator[Step]:
        for nth, step in enumerate(History(seed).steps()):
            if nth == STEPS or is_over():
                return
            yield step

    def _disturbed(self, lake: Bazaar, step: Step, chance: random.Random) -> list[str]:
        """Run the step and see that it does not end; up to five times, or until it does."""
        survived = self.record.survived
        for _ in range(chance.choice([2, 3, 4, 5])):
            kind = chance.choices(["at a place", "at any time", "stopped"], [6, 3, 1])[0]
            lake.engine(is_spark=chance.random() < BY_SPARK)
            found = self._one(lake, step, kind, chance) or lake.faults()
            if found:
                return [f"{kind}: {what}" for what in found]
            if self.record.survived > survived:
                break
        return []

    def _one(self, lake: Bazaar, step: Step, kind: str, chance: random.Random) -> list[str]:
        victim = self.pool.take()
        signal = "!STOP" if kind == "stopped" else ""
        armed = f"*#{chance.randint(1, PASSED)}{signal}" if kind != "at any time" else ""
        victim.tell(lake, *step.intervals, failpoint=armed, what=step.what, views=step.views)
        if kind == "at any time" and not victim.answers_within(chance.uniform(0, 8)):
            self._count(kind)
            victim.kill()
            return []
        if kind == "stopped" and victim.stops_within(PATIENCE):
            self._count(kind, victim.place)
            said = self._done(lake, step)
            victim.resume()
            found = self._released(victim, self._answer(victim))
            return [said] if said else found
        answer = self._answer(victim)
        if answer is None:
            self._count(kind, victim.place)
            victim.kill()
            return [] if victim.place else ["it was stuck, or died by itself"]
        self.record.survived += 1
        return self._released(victim, answer)

    def _released(self, victim: Worker, answer: dict[str, Any] | None) -> list[str]:
        """What it must not have ended in; one that has is not used again."""
        found = unexpected(answer)
        if found:
            victim.kill()
        else:
            self.pool.give_back(victim)
        return found

    def _count(self, kind: str, place: str = "") -> None:
        self.record.kills[kind] += 1
        if place:
            self.record.places[place] += 1

    def _mended(self, lake: Bazaar, step: Step) -> list[str]:
        """Run once more; then all holds, and yet another run adds no version."""
        began = time.monotonic()
        if said := self._done(lake, step):
            return [said]
        self.record.recovery_seconds.append(round(time.monotonic() - began, 2))
        found, before = lake.faults(), lake.versions()
        if not found and step.what != "maintain":
            said, now = self._done(lake, replace(step, what="run")), lake.versions()
            found += [said] if said else []
            found += [f"{n}: a rerun added a version" for n in now if now[n] != before.get(n)]
        return found

    def _done(self, lake: Bazaar, step: Step) -> str:
        """Run the step by the process that lives on; what went wrong, if anything did."""
        self.steady.tell(lake, *step.intervals, what=step.what, views=step.views)
        answer = self._answer(self.steady)
        if answer is None:
            self.steady = self.pool.take()
            return f"the undisturbed {step.what} died"
        if step.what == "verify":
            return "; ".join(answer.get("outcomes", [])) or answer.get("error", "")
        return "" if "outcomes" in answer else f"{answer['error']}: {answer['message']}"

    def _answer(self, worker: Worker) -> dict[str, Any] | None:
        """What it says; nothing if it died. One that is stuck is killed."""
        guard = threading.Timer(PATIENCE, worker.kill)
        guard.start()
        try:
            return worker.answer()
        finally:
            guard.cancel()

    def write(self) -> None:
        """The record as it is by now."""
        self.record.seconds = round(time.monotonic() - self.began, 1)
        (self.kept / "soak.json").write_text(self.record.to_json())
        (self.kept / "soak.txt").write_text(f"{self.record}\n")

    def _keep(self, at: Path, found: dict[str, Any], *lakes: Bazaar) -> None:
        for lake in lakes:
            lake.fetch()
        self.record.divergences.append(found)
        self.write()
        name = f"{found['history']}-{found['step']}"
        shutil.copytree(at, self.kept / name, dirs_exist_ok=True)
        print("divergence:", json.dumps(found), flush=True)


def unlike(model: Model, lake: Bazaar) -> list[str]:
    """Where a table is not what plain Python makes of the files."""
    found = []
    for name, wanted in model.tables().items():
        columns = model.columns[name]
        rows = counted(lake.rows(name, columns), columns)
        if rows != wanted:
            found.append(f"{name} is not the model's: {rows - wanted} in place of {wanted - rows}")
    return found


def missed(model: Model, lake: Bazaar, seen: set[Key], chance: random.Random) -> list[str]:
    """Keys of a cogroup that a reader finds otherwise than the model.

    They are some of those that the table has ever had, `seen`, and one that it never has.
    """
    columns = model.columns["totals"]
    rows = {row[:2]: dict(zip(columns, row, strict=True)) for row in model.tables()["totals"]}
    seen |= rows.keys()
    if not seen or not lake.rows("totals", columns):
        return []
    table = sluice.open(str(lake.config)).table("totals")
    wanted = [*chance.sample(sorted(seen), min(20, len(seen))), ("a", "nothing")]
    found = [(table.get(*key), rows.get(key)) for key in wanted]
    return [f"get found {one}, not {row}" for one, row in found if one != row]


def disturbed(readers: Sequence[Reader]) -> list[str]:
    """Tables whose readers, who opened them before a step, see other rows after it."""
    return [f"{one.name} is not what it was" for one in readers if not one.is_undisturbed]


def unexpected(answer: dict[str, Any] | None) -> list[str]:
    """What a run ended in that it must not end in."""
    if answer is None:
        return ["it died where it was not to"]
    error = answer.get("error")
    return [f"{error}: {answer['message']}"] if error and error not in RETRIED else []


def committers(prefix: str) -> list[str]:
    """Those that may commit to a lake there, by the lake's own rules."""
    return [one for one in COMMITTERS if not list(faults(f"{prefix}lake", one, os.environ))]


@contextlib.contextmanager
def places(name: str) -> Iterator[Prefix]:
    """Places for lakes: of the server of that name, or, without one, beside their settings."""
    if not name:
        yield str
        return
    with SERVERS[name]() as store, using(store.environ()):
        yield lambda: f"{store.uri(store.place())}/"


def soak(
    folder: Path, minutes: float, kills: int, record: Record, written: Path, prefix: Prefix
) -> None:
    """Histories for so long, and until so many runs were killed; written down after each step."""
    until = time.monotonic() + minutes * 60
    pool = Pool(folder / "workers", has_own_spark=True)

    def is_over() -> bool:
        return time.monotonic() > until and record.killed >= kills

    written.mkdir(parents=True, exist_ok=True)
    try:
        work = Soak(folder, record, pool, pool.take(), written, prefix)
        number = 0
        while not is_over():
            number += 1
            work.history(number, is_over)
            work.write()
            print(f"{record}\n", flush=True)
    finally:
        pool.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--store", choices=[*SERVERS], default="")
    parser.add_argument("--folder", type=Path, default=Path("reports") / "soak")
    given = parser.parse_args()
    scratch = given.folder.resolve() / f"scratch-{given.seed}"
    record, kept = Record(given.seed, given.store), given.folder.resolve()
    try:
        with places(given.store) as prefix:
            soak(scratch, given.minutes, given.kills, record, kept, prefix)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(scratch)
    return 1 if record.divergences else 0


if __name__ == "__main__":
    sys.exit(main())
