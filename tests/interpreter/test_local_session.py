"""The interpreter's session beside Spark's, in one process."""

import subprocess
import sys
from threading import Thread

import pytest
from pyspark.sql import utils

from sluice.interpreter.local_session import Session, interpreting

REHEARSED = """
from sluice.interpreter.local_session import Session, interpreting
from sluice.interpreter import rehearse
from sluice.interpreter import UnsupportedLocally

with interpreting(Session()) as session:
    try:
        rehearse(session.range(1).selectExpr("bit_reverse(id)"))
    except UnsupportedLocally as reason:
        print(reason)
"""


@pytest.mark.usefixtures("long")
def test_a_rehearsal_compiles_also_where_python_leaves_out_assertions() -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-c", REHEARSED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "the function bit_reverse\n"


def test_pyspark_is_switched_only_in_a_thread_that_interprets_and_only_meanwhile() -> None:
    as_it_came, elsewhere = utils.is_remote, list[bool]()
    assert as_it_came.__module__ == utils.__name__
    with interpreting(Session()):
        with interpreting(Session()):
            pass
        assert utils.is_remote()
        other = Thread(target=lambda: elsewhere.append(utils.is_remote()))
        other.start()
        other.join()
    assert elsewhere == [False]
    assert utils.is_remote is as_it_came
