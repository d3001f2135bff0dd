"""How many games of a state machine are played: the same few by default, many others in depth.

Hypothesis plays a game and makes one that fails short; most of its time goes into drawing. `play`
plays by chance alone, twice as many in that time, and says which one has failed.
"""

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

Games = tuple[int, int]  # how many, of how many steps
T = TypeVar("T")
OPTIONS: dict[Hashable, Sequence[object]] = {}
SEED = os.environ.get("SLUICE_SEED", "20")  # of what is drawn by chance without Hypothesis
HELD_BACK = 0.2  # of the rules, in each game others: what they do hides what comes of the rest


def in_depth() -> bool:
    return os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def seeds(default: int, deep: int) -> range:
    """Seeds of a random history whose every step is dear."""
    return range(deep if in_depth() else default)


def games(default: Games, deep: Games) -> settings:
    """`HYPOTHESIS_PROFILE=deep` plays elsewhere each time, and makes what it finds short."""
    is_deep = in_depth()
    count, steps = deep if is_deep else default
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        derandomize=not is_deep,
        phases=list(Phase) if is_deep else [Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def choice(options: Sequence[T]) -> st.SearchStrategy[T]:
    """One of these, the simplest first, for Hypothesis and for `play`."""
    strategy = st.sampled_from(options)
    OPTIONS[strategy] = options
    return strategy


def play(kind: type[RuleBasedStateMachine], seed: int, steps: int) -> None:
    """One game by chance, whose rules take nothing but a `choice`. The same for the same seed."""
    chance, game = Random(seed), kind()
    held_back = {rule.function for rule in game.rules if chance.random() < HELD_BACK}
    rules = [rule for rule in game.rules if rule.function not in held_back]
    with _noted(f"in the game by chance of seed {seed}, {steps} steps"):
        try:
            for _ in range(steps):
                able = [rule for rule in rules if all(can(game) for can in rule.preconditions)]
                if able:
                    rule = chance.choice(able)
                    drawn = {n: chance.choice(OPTIONS[s]) for n, s in rule.arguments.items()}
                    rule.function(game, **drawn)
        except Exception:
            with suppress(Exception):  # it puts back what it replaced; its own findings come late
                game.teardown()
            raise
        game.teardown()


@contextmanager
def _noted(where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise
