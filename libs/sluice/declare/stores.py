"""Kinds of stores, and the committers that may meet on one table in each.

A commit of Delta creates the file of the next version. Two committers may meet only if both create
it by an operation of the store that fails when the file is there, in every process and on every
machine. Delta's jar commits to S3 with a lock inside one JVM, which other processes don't see. So
on S3 Spark computes, and delta-rs reads and commits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

DELTA_RS, SPARK, AUTO = "delta-rs", "spark", "auto"  # committers, and the choice between them
BOTH = frozenset({DELTA_RS, SPARK})
UNSAFE = ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_S3_LOCKING_PROVIDER")
Fault = tuple[tuple[str, ...], str]
OFF = ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Store:
    """One kind of store. `exclusive`: the operation by which only one commit of a number wins.

    `options`: those by which delta-rs is asked for it. `unsafe`: variables that would end it.
    `why_not_spark`: why only delta-rs commits there. `lacks`: why no lake may lie there yet.
    """

    name: str
    schemes: tuple[str, ...]
    exclusive: str
    committers: frozenset[str]
    options: Mapping[str, str] = field(default_factory=dict)
    unsafe: tuple[str, ...] = ()
    why_not_spark: str = ""
    lacks: str = ""

    @property
    def takes_spark(self) -> bool:
        """True if Spark itself may read and write tables there."""
        return SPARK in self.committers


STORES = (
    Store("a disk", ("", "file"), "a link or rename that replaces nothing", BOTH),
    Store(
        "S3",
        ("s3", "s3a"),
        "PUT with If-None-Match: *",
        frozenset({DELTA_RS}),
        {"conditional_put": "etag"},
        UNSAFE,
        "Delta's jar has no put-if-absent there, so two processes could commit one version",
    ),
    Store(
        "Azure",
        ("abfs", "abfss"),
        "PUT with If-None-Match: *",
        frozenset({DELTA_RS}),
        why_not_spark="its connector to Azure is not tested with Sluice",
    ),
    Store(
        "Google Cloud Storage",
        ("gs",),
        "a write with ifGenerationMatch=0",
        BOTH,
        lacks="exclusive commits could not be tested there",
    ),
)
SCHEMES = {scheme: store for store in STORES for scheme in store.schemes}


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI; an empty text for a path."""
    return uri.partition("://")[0].lower() if "://" in uri else ""


def store_of(uri: str) -> Store | None:
    """Return the kind of store that a URI names; None for one that is unknown."""
    return SCHEMES.get(scheme_of(uri))


def takes_spark(uri: str) -> bool:
    """True if Spark itself may read and write the table at a URI."""
    store = store_of(uri)
    return store is None or store.takes_spark


def faults(lake: str, committer: str, environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what makes commits to a lake unsafe, each with the place of its setting."""
    store = store_of(lake)
    if store is None:
        known = ", ".join(
            f"{scheme}://" for scheme in SCHEMES if scheme and not SCHEMES[scheme].lacks
        )
        message = f"nothing is known of commits to {scheme_of(lake)}://; write a path, or {known}"
        yield ("lake",), message
        return
    if store.lacks:
        yield (
            ("lake",),
            f"no lake may lie on {store.name} yet: {store.lacks}; write a path, s3:// or abfss://",
        )
    if committer != AUTO and committer not in store.committers:
        why = store.why_not_spark
        message = f"`{committer}` is not safe on {store.name}: {why}; write `delta-rs`, or nothing"
        yield ("spark", "commit"), message
    for name in store.unsafe:
        if environ.get(name, "").lower() not in OFF:
            why = "commits could overwrite each other; unset it, conditional writes need no help"
            yield ("lake",), f"{name} is set in the environment: {why}"
