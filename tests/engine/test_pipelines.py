"""Whole pipelines by the hundred: real plans, positions and frontiers over dictionaries.

A source whose days are delivered, corrected and repeated, a dimension, a diamond with a tail, both
kinds of lookup, a join, a union, a distinct select and window functions over them; upkeep,
definitions that change, foreign commits, cleaned logs, a backup put back, batches that sleep over
all that. In the end all are up to date, and one more run changes nothing.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations, product
from random import Random, SystemRandom

import pytest
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from tests.engine.game import Game, made_by
from tests.engine.shapes import COGROUPS, JOINED, NODES, Declared
from tests.support.games import choice, games, in_depth, play

from sluice.delta.upkeep.maintenance import upkeep
from sluice.engine.plan import plan_batch, plan_rebuild
from sluice.errors import InputRewritten, LostRace
from sluice.operate.maintain import oldest_named

DAYS = choice((1, 2, 3))
ROWS = [*product("abc", (1, 2, 3))]
DAYS_ROWS = [[*rows] for count in range(4) for rows in product(ROWS, repeat=count)]
DELIVERED = choice(DAYS_ROWS)
PRICES = choice(
    [
        {v: price for v, price in zip("abc", prices, strict=True) if price}
        for prices in product((None, 1, 2, 3), repeat=3)
    ]
)
VIEW_NAMES = (*COGROUPS, "priced", "fresh", *JOINED)
VIEWS, NAMES = choice(VIEW_NAMES), choice(NODES)
SOME_VIEWS = choice([{*v} for n in range(len(VIEW_NAMES) + 1) for v in combinations(VIEW_NAMES, n)])
TABLES = choice((*("s", "d") * 4, *NODES))
SIDE_NAMES = ("left", "right", "both", "fresh", "tail", "paired")
SIDES = choice(SIDE_NAMES)
EITHER = choice((False, True))
HARM = choice(("rows", "rows below a batch", "log", "vacuum"))
LUCK = Random(0)
WEEKS = choice(  # days that follow on each other, fewer first
    [
        [(LUCK.randint(1, 3), LUCK.choice(DAYS_ROWS), LUCK.choice(SIDE_NAMES)) for _ in range(n)]
        for n in sorted(LUCK.choices(range(5), k=500))
    ]
)
MOST_BACKUPS = 1


class Pipelines(Game):
    """What may happen, in any order."""

    @rule(day=DAYS, rows=DELIVERED)
    def a_day_is_delivered(self, day: int, rows: list[tuple[str, int]]) -> None:
        """For the first time, otherwise, or as it was."""
        kept = {key: row for key, row in self.rows("s").items() if key[0] != day}
        self.put("s", kept | {(day, nth): row for nth, row in enumerate(rows)}, "ingest")

    @rule(prices=PRICES, day=DAYS, rows=DELIVERED)
    def prices_are_loaded(
        self, prices: dict[str, int], day: int, rows: list[tuple[str, int]]
    ) -> None:
        if prices != self.rows("d"):
            self.put("d", prices, "load")
        self.one_view_is_ahead(day, rows, "priced", is_pinned=False)

    @rule(view=VIEWS, is_cut=EITHER, is_pinned=EITHER)
    def a_view_is_advanced(self, view: str, *, is_cut: bool, is_pinned: bool) -> None:
        """Its state and what is seen of it, unless it is killed in between."""
        for name in self.nodes_of(view)[: 1 if is_cut else None]:
            self.advance(name, is_pinned=is_pinned)

    @rule(day=DAYS, rows=DELIVERED, view=SIDES, is_pinned=EITHER)
    def one_view_is_ahead(
        self, day: int, rows: list[tuple[str, int]], view: str, *, is_pinned: bool
    ) -> None:
        self.a_day_is_delivered(day, rows)
        self.a_view_is_advanced(view, is_cut=False, is_pinned=is_pinned)

    @rule()
    def all_views_are_advanced(self) -> None:
        for name in NODES:
            self.advance(name)

    @rule(name=NAMES)
    def a_batch_is_planned_and_sleeps(self, name: str) -> None:
        if batch := self.planned(name):
            self.asleep.append(batch)

    @precondition(lambda self: self.asleep)
    @rule()
    def a_sleeper_wakes(self) -> None:
        with suppress(LostRace):
            self.commit(self.asleep.pop(0))

    @rule(name=NAMES)
    def a_build_is_cut(self, name: str) -> None:
        """By a kill between the creation of the table and its first rows."""
        if not self.is_there(name):
            self.tables.create(self.uri(name), made_by("create"))

    @rule(views=SOME_VIEWS)
    def a_view_is_declared_otherwise(self, views: set[str]) -> None:
        """It is rebuilt, later; as are others, for no reason."""
        if "right" in views:
            self.by, self.other = self.other, self.by
        for view in VIEW_NAMES:
            if view in views - {"right"}:
                self.rebuild(view)

    @rule(name=TABLES, is_setting=EITHER)
    def upkeep_begins(self, name: str, *, is_setting: bool) -> None:
        if is_setting and self.is_there(name):
            self.tables.follow(self.uri(name), None)
        elif self.is_there(name) and self.head(name).is_filled:
            self.late.append(self.head(name))

    @precondition(lambda self: self.late)
    @rule()
    def upkeep_lands(self) -> None:
        """Perhaps on batches that it knows nothing of."""
        before = self.late.pop()
        self.tables.follow(before.uri, upkeep(before, "compact"))

    @rule(name=TABLES)
    def what_nobody_needs_is_deleted(self, name: str) -> None:
        """Behind what consumers name, as a vacuum does."""
        if self.is_there(name):
            oldest, lacking = (
                oldest_named(self.by.project, f"shop.{name}", self.head(name)),
                self.lacking,
            )
            self.tables.vacuum(self.uri(name), oldest)
            assert self.lacking == lacking, "somebody needs it"

    @rule(name=TABLES, what=HARM)
    def somebody_does_harm(self, name: str, what: str) -> None:
        if not self.is_there(name):
            return
        uri = self.uri(name)
        if what == "log":
            self.tables.clean(uri)
            self.all_views_are_advanced()
        elif what == "vacuum":
            self.tables.vacuum(uri, self.tables[uri].version)
            self.all_views_are_advanced()
        elif name in NODES and self.views[name].made:
            self.intrude(name, is_below=what != "rows")

    @precondition(lambda self: len(self.backups) < MOST_BACKUPS and self.head("s").is_filled)
    @rule()
    def the_source_is_copied(self) -> None:
        """Once it is filled: over an empty one nothing is rebuilt, and harm stays."""
        self.backups.append(self.tables[self.uri("s")].copy())

    @precondition(lambda self: self.backups)
    @rule(days=WEEKS)
    def the_source_is_put_back(self, days: list[tuple[int, list[tuple[str, int]], str]]) -> None:
        """Alone, while nothing runs; it is written again, and views follow when they do."""
        self.asleep, self.late = [], []
        self.tables[self.uri("s")] = self.backups.pop()
        for day, rows, view in days:
            self.one_view_is_ahead(day, rows, view, is_pinned=False)


SETTINGS = games(default=(60, 20), deep=(1_000, 30))
BY_CHANCE, STEPS = 50, 20
IN_DEPTH = 20_000


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> type[Pipelines]:
    """With the views as they may be declared."""
    folder = tmp_path_factory.mktemp("declared")
    by = {"by": Declared.to(folder, max), "other": Declared.to(folder, min)}
    return type("Played", (Pipelines,), by)


def test_every_history_of_a_pipeline_ends_as_its_queries_have_it(played: type[Pipelines]) -> None:
    """What fails is made short."""
    run_state_machine_as_test(played, settings=SETTINGS)  # type: ignore[arg-type]


def test_so_do_many_by_chance(played: type[Pipelines]) -> None:
    first = SystemRandom().randrange(2**60) if in_depth() else 0
    for seed in range(first, first + (IN_DEPTH if in_depth() else BY_CHANCE)):
        play(played, seed, STEPS)


@pytest.fixture
def game(played: type[Pipelines]) -> Iterator[Pipelines]:
    game = played()
    yield game
    game.patched.__exit__(None, None, None)


def test_a_lookup_whose_prices_were_put_back_and_loaded_again_is_refused(game: Pipelines) -> None:
    facts = {(1, 0): ("a", 1)}
    backup = game.tables[game.uri("d")].copy()
    game.put("d", {"a": 1}, "load")
    game.put("s", facts, "ingest")
    game.advance("priced")
    game.tables[game.uri("d")] = backup
    game.put("d", {"a": 2}, "load")
    game.put("s", facts | {(1, 1): ("a", 2)}, "ingest")
    with pytest.raises(InputRewritten):
        plan_batch(game.by.nodes["priced"], game.lake, game.by.project.graph)


def test_prices_are_kept_for_a_lookup_whose_log_no_longer_names_them(game: Pipelines) -> None:
    facts = {(1, 0): ("a", 1)}
    for price in (1, 2):
        game.put("d", {"a": price}, "load")
        game.put("s", {**facts, (price, 1): ("a", price)}, "ingest")
        game.advance("priced")
    kept = oldest_named(game.by.project, "shop.d", game.head("d"))
    game.tables.clean(game.uri("priced"))
    assert oldest_named(game.by.project, "shop.d", game.head("d")) <= kept == 1


def test_a_build_waits_if_only_a_vacuumed_version_would_agree(game: Pipelines) -> None:
    """Nobody named it, so nobody kept it; the input that lags will agree with the newest."""
    facts = {(1, 0): ("a", 1)}
    graph = game.by.project.graph
    game.put("s", facts, "ingest")
    for name in NODES[:4]:
        game.advance(name)
    game.put("s", facts | {(1, 1): ("a", 2)}, "ingest")
    game.advance("left__state")
    game.advance("left")
    left = game.head("left")
    game.tables.vacuum(left.uri, oldest_named(game.by.project, "shop.left", left))
    plan = plan_rebuild(game.by.nodes["both__state"], game.lake, graph)
    assert plan.waiting_for == (
        "inputs that reflect the same state of their sources (version 1 of shop.left was vacuumed)"
    )
    game.advance("right__state")
    game.advance("right")
    game.advance("both__state")
    assert game.is_there("both__state")


def test_rows_that_both_declarations_make_are_of_either(game: Pipelines) -> None:
    """The most and the least of `a` agree, at different versions of the source."""
    game.put("s", {(1, 0): ("a", 1), (1, 1): ("a", 1)}, "ingest")
    game.bring_up_to_date(NODES[:8])
    game.by, game.other = game.other, game.by
    game.put("s", {(1, 0): ("a", 1), (1, 1): ("a", 2)}, "ingest")
    game.bring_up_to_date(NODES[:8])
    assert game.declarations("both", game.head("both").version) == {game.by, game.other}
    assert game.rows("tail") == {"a": ((2, 1), 3)}
