"""What holds for every view, whatever it computes: one contract, fed by random changes.

Default: a short history for each case, the same one each time, so that a build fails for what its
change did and not by the luck of a seed. `SLUICE_SEED=7` draws others. `HYPOTHESIS_PROFILE=deep`
looks further, elsewhere each time, and makes what it finds as short as possible: minutes.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.support.games import SEED, in_depth
from tests.support.lake import Lake, Row, State, counted, folded, repeated

from sluice.limits import Limits
from sluice.spark.session import has_no_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Query = Callable[[State], list[Row]]
Commit = dict[str, tuple[list[Row], list[Row]]]  # of each source, the rows that come and go

STEPS, ROWS = 4, 30  # of a history, and those that it draws for each source

_COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}
PROFILES = {
    "default": settings(
        max_examples=1, stateful_step_count=4, derandomize=True, phases=[Phase.generate], **_COMMON
    ),
    "deep": settings(max_examples=40, stateful_step_count=8, **_COMMON),
}
SETTINGS = PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "default")]


BY_SPARK = {"computed_here_bytes": -1}  # a batch between others, so that both meet in one table


@dataclass(frozen=True)
class Case:
    """A view to put to the test.

    `rows`: source -> a strategy for its rows, key included. `query` makes a brute-force reading of
    the defining query; a fresh one for each run, because a lookup's remembers what it joined.
    `sketches`: columns that may differ with the order of what came. `ways`: limits of one batch
    after the other, in a circle, so that small data takes the ways of large data. `needs_spark`:
    the view has what only Spark computes. `by_ways`: `tests/kinds/test_ways.py` has Spark compute
    it, besides.
    """

    name: str
    declared: str
    view: str
    rows: Mapping[str, st.SearchStrategy[Row]]
    query: Callable[[], Query]
    depends_on_batches: bool = False
    sketches: frozenset[str] = frozenset()
    spark: Mapping[str, Any] = field(default_factory=dict)
    ways: Sequence[Mapping[str, float]] = ({}, BY_SPARK, {})
    needs_spark: bool = False
    by_ways: bool = False

    def __str__(self) -> str:
        return self.name


def by_spark(case: Case) -> Case:
    """A case whose view has what only Spark computes."""
    return replace(case, needs_spark=True)


def by_ways(case: Case) -> Case:
    """A case that is held to the contract beyond one limit after another, by Spark, too."""
    return replace(case, by_ways=True)


def held(cases: Sequence[Case]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Two tests that hold cases to the contract: in this process, and by either engine in turn.

    Spark takes one batch of what this process has written, and computes all of it at once.
    """

    @pytest.mark.parametrize("case", [case for case in cases if not case.needs_spark], ids=str)
    def here(case: Case, spark: "SparkSession") -> None:
        hold(case, spark)

    @pytest.mark.usefixtures("real_spark")
    @pytest.mark.parametrize("case", [case for case in cases if not case.by_ways], ids=str)
    def by_either_engine(case: Case, spark: "SparkSession") -> None:
        hold(case, spark, steps=3)

    return here, by_either_engine


def hold(case: Case, session: "SparkSession", steps: int = STEPS) -> None:
    """Hold a case to the contract, without Spark's batches if the session has no Spark."""
    if has_no_jvm(session):
        case = replace(case, ways=[w for w in case.ways if not BY_SPARK.items() <= w.items()])
    if in_depth():
        _search(case, session, settings(SETTINGS, stateful_step_count=2 * steps))
        return
    trial, happened = Trial(case, session), []
    try:
        for step in history(case, steps):
            happened.append(step)
            for commit in step:
                trial.put(commit)
            trial.batch()
        trial.end()
    except Exception as error:
        error.add_note(f"after the history by SLUICE_SEED={SEED}: {happened}")
        raise
    finally:
        trial.folder.cleanup()


def history(case: Case, steps: int) -> Iterator[list[Commit]]:
    """Yield the commits before each batch: a first load, then changes of one or several sources.

    Rows come by their times in reverse, in order or mixed, so that most are late in some histories.
    A commit updates, deletes and brings back rows by keys that return; some rows come and go before
    a batch sees them.
    """
    chance = Random(f"{SEED} {case.name}")
    left = {name: _by_time(rows, chance) for name, rows in _draw(case, chance).items()}
    came: dict[str, list[Row]] = {name: [] for name in left}

    def commit(sources: Sequence[str], most: int) -> Commit:
        found = {}
        for name in sources:
            rows = [left[name].pop() for _ in range(min(len(left[name]), chance.randint(1, most)))]
            gone = chance.sample(came[name], min(len(came[name]), chance.randint(0, 3)))
            came[name] += rows
            found[name] = (rows, gone)
        return found

    yield [commit([*left], 8) for _ in range(chance.randint(1, 2))]
    for _ in range(steps - 1):
        some = chance.sample([*left], chance.randint(1, len(left)))
        step = [commit(some, 4) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.5:
            step.append({name: ([], came[name][-2:]) for name in some})
        yield step


def _draw(case: Case, chance: Random) -> dict[str, list[Row]]:
    """Draw rows of each source: Hypothesis's second example, because its first is the simplest."""
    drawn: dict[str, list[Row]] = {}
    lists = {n: st.lists(rows, min_size=ROWS, max_size=ROWS) for n, rows in case.rows.items()}

    @hypothesis.seed(chance.randrange(2**32))
    @settings(max_examples=2, database=None, phases=[Phase.generate], **_COMMON)
    @given(st.fixed_dictionaries(lists))
    def keep(rows: dict[str, list[Row]]) -> None:
        drawn.update(rows)

    keep()
    return drawn


def _by_time(rows: list[Row], chance: Random) -> list[Row]:
    """Rows as they are drawn, or by their times; taken from the end, the latest ones first."""
    order = chance.choice(["as drawn", "latest first", "earliest first"])
    if order == "as drawn":
        return rows
    return sorted(rows, key=_times, reverse=order == "earliest first")


def _times(row: Row) -> list[datetime]:
    return [value for value in row.values() if isinstance(value, datetime)]


def _search(case: Case, session: "SparkSession", config: settings) -> None:
    """Have Hypothesis look for a history that breaks the contract; the run that fails is shown."""
    commits = st.fixed_dictionaries({n: _commit(rows) for n, rows in case.rows.items()})

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.trial = Trial(case, session)
            self.is_sound = True

        @rule(commits=st.lists(commits, min_size=1, max_size=3))
        def changes_then_batch(self, commits: list[Commit]) -> None:
            if not any(self.trial.lake.rows_of_sources().values()):
                # Hypothesis begins with the run that changes nothing; it counts as none.
                self.is_sound = any(come for commit in commits for come, _ in commit.values())
                assume(self.is_sound)
            self.is_sound = False
            for commit in commits:
                self.trial.put(commit)
            self.trial.batch()
            self.is_sound = True

        def teardown(self) -> None:
            try:
                if self.is_sound:
                    self.trial.end()
            finally:
                self.trial.folder.cleanup()

    run_state_machine_as_test(Machine, settings=config)


def _commit(rows: st.SearchStrategy[Row]) -> st.SearchStrategy[tuple[list[Row], list[Row]]]:
    return st.tuples(st.lists(rows, max_size=6), st.lists(rows, max_size=3))


def _without(columns: frozenset[str], rows: list[Row]) -> Counter[Any]:
    """Numbers are compared where they are read, and `verify` compares sketches and slices."""
    return counted({c: v for c, v in row.items() if c not in columns} for row in rows)


class Trial:
    """A lake with the view: every batch is compared with the query, the end in dearer ways."""

    def __init__(self, case: Case, session: "SparkSession"):
        self.case = case
        self.folder = TemporaryDirectory()
        self.lake = Lake(self.path / "lake", case.declared, session, **case.spark)
        self.ways = cycle(case.ways)
        for source in case.rows:
            self.lake.put(source)
        self.expected = case.query()

    @property
    def path(self) -> Path:
        return Path(self.folder.name)

    def put(self, commit: Commit) -> None:
        for source, (come, gone) in commit.items():
            self.lake.put(source, *come, gone=gone)

    def batch(self) -> None:
        self.lake.limits = Limits()
        self.lake.limit(**next(self.ways)).advance()
        self.equals_its_query()
        self.feed_is_minimal_and_whole()
        self.replay_commits_nothing()

    def end(self) -> None:
        self.verify_agrees()
        self.one_batch_gives_the_same()
        self.deleting_all_empties_it()

    def equals_its_query(self) -> None:
        expected = self.expected(self.lake.rows_of_sources())
        assert counted(self.lake.rows(self.case.view)) == counted(expected)

    def feed_is_minimal_and_whole(self) -> None:
        for name in self.lake.stored_names():
            feed = self.lake.feed(name)
            assert folded(feed) == counted(self.lake.stored(name)), f"{name}: the feed lacks rows"
            assert not repeated(feed), f"{name}: the feed has rows that stayed the same"

    def replay_commits_nothing(self) -> None:
        before = [self.lake.head(name).version for name in self.lake.stored_names()]
        outcomes = {report.outcome for report in self.lake.advance()}
        assert outcomes == {"unchanged"}
        assert before == [self.lake.head(name).version for name in self.lake.stored_names()]

    def verify_agrees(self) -> None:
        """In this process, whoever has computed the rows; tests/whole has Spark's."""
        limits = self.lake.limits
        assert [v for v in self.lake.here().verdicts() if not v.is_equal] == []
        self.lake.limit(**asdict(limits))

    def one_batch_gives_the_same(self) -> None:
        """Where both engines take turns, Spark's has the rows that either has computed."""
        if self.case.depends_on_batches:
            return
        other = self.lake.afresh(self.path / "other")
        other.limit(**(BY_SPARK if BY_SPARK in self.case.ways else {})).advance()
        left_out = self.case.sketches | self.lake.filed_by(self.case.view)
        for name in (self.case.view, *self.lake.exact_names(self.case.view)):
            mine, others = (_without(left_out, lake.stored(name)) for lake in (self.lake, other))
            assert others == mine, name

    def deleting_all_empties_it(self) -> None:
        self.lake.delete_all()
        self.batch()
        for name in self.lake.stored_names():
            assert self.lake.stored(name) == [], name
