"""Cursors: places in a read, as opaque texts that a client passes back.

A cursor holds the versions of the tables that are read, and the last row of the page. So the next
page is of the same versions, whatever was committed since, and the server keeps nothing: it may
end and start again between two pages. A version that was vacuumed is reported, not replaced.

Cursors are not signed. All in them is checked as if it came from the client, and a cursor can name
nothing that a request could not: what a token may see is checked for each request.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from sluice.delta.log.opened import commit_of, newest_version
from sluice.errors import UsageError
from sluice.read.stored.snapshot import NotBuilt, open_delta
from sluice.serve.answers import Refused

AGAIN = "begin again without a cursor"
Pins = Mapping[str, tuple[str, int]]  # of stored tables: their incarnation and version


def incarnation(table: str, uri: str) -> str:
    """Return what distinguishes the table at a URI from one that is created there later."""
    return str(open_delta(table, uri).metadata().id).replace("-", "")[:12]


@dataclass(frozen=True)
class Cursor:
    """A place after a row, in the answer to a question: a read without its limit and cursor."""

    pins: Pins
    question: str
    after: str

    def encode(self) -> str:
        body = [{t: list(pin) for t, pin in self.pins.items()}, self.question, self.after]
        return urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str, question: str, tables: Mapping[str, str]) -> "Cursor":
        """Return the cursor of a text; `tables`: the URIs of the tables that the question reads.

        Raises Refused for another question's, and if a version is gone.
        """
        try:
            pins, of, after = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            found = cls({t: (str(i), v) for t, (i, v) in pins.items()}, str(of), str(after))
            is_sound = all(type(version) is int and version >= 0 for _, version in pins.values())
        except (ValueError, TypeError, AttributeError, RecursionError):
            is_sound, found = False, cls({}, "", "")
        if not is_sound or found.question != question or {*found.pins} != {*tables}:
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                "the cursor is not one of this read",
                "repeat the request of the previous page, and add its cursor",
            )
        for table, (made, version) in found.pins.items():
            if incarnation(table, tables[table]) != made:
                why = f"{table} was dropped and created again"
                raise Refused(HTTPStatus.GONE, why, "begin again without a cursor")
            check_version(table, tables[table], version)
        return found


def check_version(table: str, uri: str, version: int) -> None:
    """Raise Refused for a version that a table does not have, or not any more."""
    if commit_of(uri, version) is not None:
        return
    try:
        open_delta(table, uri, version)  # a checkpoint may show it
    except NotBuilt:
        raise
    except UsageError:
        newest = newest_version(uri)
        if version > newest:
            why, hint = f"{table} has no version {version} yet", f"the newest is {newest}"
            raise Refused(HTTPStatus.NOT_FOUND, why, hint) from None
        why = f"version {version} of {table} is no longer there"
        raise Refused(HTTPStatus.GONE, why, AGAIN) from None


def fingerprint(*question: object) -> str:
    """Return a short text that distinguishes questions."""
    return sha256(json.dumps(question, default=str).encode()).hexdigest()[:12]
