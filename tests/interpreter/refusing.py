"""Expressions that the interpreter leaves to Spark."""

import pytest

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting


def refused(sql: str, count: int = 1) -> None:
    session = Session()
    with interpreting(session), pytest.raises(UnsupportedLocally):
        session.range(1, count + 1).selectExpr(f"{sql} AS found").toArrow()
