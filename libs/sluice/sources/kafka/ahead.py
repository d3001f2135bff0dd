"""Batches that are fetched ahead: the next one while the last is decoded and committed."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from sluice.sources.kafka.broker import Taken


def fetched_ahead(batches: Generator[Taken]) -> Iterator[Taken]:
    """Yield batches in order; one more is fetched meanwhile, and never a second.

    What the brokers refuse is raised in the batch's turn, after the batches before it.
    """
    with closing(batches), ThreadPoolExecutor(1, "sluice-fetch") as pool:
        following = pool.submit(next, batches, None)
        while taken := following.result():
            following = pool.submit(next, batches, None)
            yield taken
