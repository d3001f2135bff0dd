"""How many games of a state machine are played: the same few by default, many others in depth."""

import os

from hypothesis import HealthCheck, Phase, settings

Games = tuple[int, int]  # how many, of how many steps


def games(default: Games, deep: Games) -> settings:
    """`HYPOTHESIS_PROFILE=deep` plays elsewhere each time, and makes what it finds short."""
    is_deep = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
    count, steps = deep if is_deep else default
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        derandomize=not is_deep,
        phases=list(Phase) if is_deep else [Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
