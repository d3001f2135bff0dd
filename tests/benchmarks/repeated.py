"""Measurements that are repeated: warmed up first, the fastest shown, all printed as JSON."""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any


def measure(
    run: Callable[[int, argparse.Namespace], Iterator[Any]],
    given: argparse.Namespace,
    show: Callable[[list[Any]], None],
    what: Callable[[Any], object],
) -> None:
    """Measure tables of all sizes given, after a run with few rows that is not counted.

    `what`: what a measurement is of; of those of the same, the fastest is shown.
    """
    warming = argparse.Namespace(**{**vars(given), "changes": [1_000], "repeat": 1})
    list(run(20_000, warming))
    found = [one for rows in given.rows for one in run(rows, given)]
    slowest_first = sorted(found, key=lambda one: -one.seconds)
    best = {what(one): one for one in slowest_first}
    show([best[key] for key in dict.fromkeys(map(what, found))])
    measured = {"load_average": os.getloadavg()[0], "measured": [asdict(one) for one in found]}
    print(json.dumps(measured))
    if given.json:
        given.json.write_text(json.dumps(measured))
