"""History that a topic has lost: named with its choices, never jumped over in silence."""

import re
from collections.abc import Callable

import pytest
from tests.sources.kafka.conftest import Topical
from tests.support.landed import RUN

from sluice.errors import ExitCode, HistoryLost, InputReplaced, UsageError
from sluice.operate.delivering import resume

Made = Callable[..., Topical]


def test_retention_that_passed_the_recorded_offset_is_named(topical: Made) -> None:
    lake = topical()
    lake.send(*({"id": n} for n in range(3)))
    lake.take()
    lake.send(*({"id": n} for n in range(3, 9)))
    lake.broker.cut(lake.topic, 6)
    before = lake.versions("events")
    with pytest.raises(HistoryLost, match="up to offset 3, but begins at 6 now") as lost:
        lake.take()
    assert lost.value.exit_code is ExitCode.HISTORY
    assert re.search("--as-landed.*--from earliest", lost.value.hint)
    assert lake.versions("events") == before
    report = resume(lake.project, lake.table("events"), RUN, latest=False)
    assert report.warnings == (
        "shop.events: partition 0: the messages from offset 3 to 6 are skipped",
    )
    lake.take()
    assert [r["id"] for r in lake.values()] == [0, 1, 2, 6, 7, 8]
    assert lake.place().gaps == ((0, 3, 6),)


def test_an_operator_may_continue_at_the_end(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1})
    lake.take()
    lake.send({"id": 2})
    resume(lake.project, lake.table("events"), RUN, latest=True)
    lake.send({"id": 3})
    lake.take()
    assert [r["id"] for r in lake.values()] == [1, 3]
    assert lake.place().gaps == ((0, 1, 2),)


def test_a_topic_that_was_made_again_is_named(topical: Made) -> None:
    lake = topical()
    lake.send({"id": 1}, {"id": 2})
    lake.take()
    lake.broker.drop(lake.topic)
    with pytest.raises(UsageError, match="there is no topic"):
        lake.take()
    lake.broker.topic(lake.topic)
    lake.send(*({"id": n} for n in range(5)))
    with pytest.raises(InputReplaced, match="was deleted and created again"):
        lake.take()


def test_a_source_that_read_nothing_has_nowhere_to_continue(topical: Made) -> None:
    lake = topical()
    with pytest.raises(UsageError, match="has read nothing"):
        resume(lake.project, lake.table("events"), RUN, latest=True)


def test_the_first_batch_may_begin_at_the_end(topical: Made) -> None:
    lake = topical(bounds=", start: latest")
    lake.send({"id": 1})
    lake.take()
    lake.send({"id": 2})
    lake.take()
    assert [r["id"] for r in lake.values()] == [2]
