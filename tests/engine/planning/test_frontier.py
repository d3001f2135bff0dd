"""Inputs advance together: never two states of one source, never backwards, never stuck.

The tables are real, the views are not: a batch of a view commits what it is told, or nothing, as a
real one does, and nothing here starts Spark.
"""

from pathlib import Path

import pytest
from tests.delta.tables import ID_AND_V, a_position
from tests.engine.stepped import DIAMOND, Lake

from sluice.delta.writing.commit import create


def test_a_source_reflects_its_last_change_of_data(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"view": ["s"]})
    lake.deliver("s")
    lake.deliver("s", changes=False)
    assert lake.frontier("s") == {"p.s": 1}


def test_a_diamond_waits_at_the_state_that_both_sides_have_seen(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    for view in DIAMOND:
        assert lake.advance(view) == "committed"
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == "unchanged"
    lake.advance("right")
    assert lake.advance("bottom") == "committed"
    assert {p.version for p in lake.recorded("bottom").values()} == {2}


def test_a_diamond_takes_the_newest_state_that_both_sides_once_had(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == "committed"
    assert {n: p.version for n, p in lake.recorded("bottom").items()} == {"p.left": 2, "p.right": 2}


def test_nobody_goes_back_behind_a_rebuild(tmp_path: Path) -> None:
    """Before it, numbers may be those of what was put back from a backup since."""
    lake = Lake(tmp_path, DIAMOND)
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    assert lake.advance("bottom") == "committed"
    lake.deliver("s")
    lake.advance("left")
    lake.rebuild("right")
    assert lake.advance("bottom") == "committed"
    lake.deliver("s")
    lake.rebuild("right")
    assert lake.advance("bottom") == "waiting"
    lake.advance("left")
    assert lake.advance("bottom") == "committed"


def test_a_view_of_several_inputs_waits_for_one_that_has_to_be_rebuilt(tmp_path: Path) -> None:
    """The source was put back from a backup and written again: its numbers say nothing."""
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    backup = lake.backed_up()
    lake.deliver("s")
    for view in DIAMOND:
        assert lake.advance(view) == "committed"
    lake.put_back(backup)
    lake.deliver("s")
    lake.rebuild("left")
    assert lake.advance("bottom") == "waiting"
    lake.rebuild("right")
    assert lake.advance("bottom") == "committed"


def test_a_view_waits_for_one_that_has_yet_to_follow_a_rebuild(tmp_path: Path) -> None:
    """Its input was rebuilt from the source of today, it was made from that of before."""
    lake = Lake(tmp_path, {"left": ["s"], "below": ["left"], "bottom": ["below", "s"]})
    backup = lake.backed_up()
    lake.deliver("s")
    for view in ("left", "below"):
        lake.advance(view)
    lake.put_back(backup)
    for _ in range(2):
        lake.deliver("s")
    lake.rebuild("left")
    assert lake.advance("bottom") == "waiting"
    lake.advance("below")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2


def test_rebuilds_that_changed_nothing_must_agree_before_a_view_over_them_counts(
    tmp_path: Path,
) -> None:
    """What `both` was made from is gone; its rows are of two states of the source of today."""
    views = {"left": ["s"], "right": ["s"], "both": ["left", "right"], "bottom": ["both", "s"]}
    lake = Lake(tmp_path, views)
    backup = lake.backed_up()
    lake.deliver("s")
    for view in ("left", "right", "both"):
        lake.advance(view)
    lake.put_back(backup)
    lake.deliver("s")
    lake.rebuild("left", changes=False)
    lake.deliver("s")
    lake.rebuild("right", changes=False)
    assert lake.advance("bottom") == "waiting"
    lake.rebuild("left", changes=False)
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2


def test_an_input_of_an_input_may_be_ahead_without_new_rows(tmp_path: Path) -> None:
    views = {"left": ["s"], "right": ["s"], "both": ["left", "right"], "bottom": ["both", "t"]}
    lake = Lake(tmp_path, views)
    lake.deliver("s")
    lake.deliver("t")
    for view in ("left", "right", "both"):
        lake.advance(view)
    lake.deliver("s")
    lake.advance("left", changes=False)
    assert lake.advance("bottom") == "committed"


def test_a_first_batch_waits_if_no_state_was_ever_common(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    lake.advance("left")
    lake.deliver("s")
    lake.advance("right")
    assert lake.advance("bottom") == "waiting"
    lake.advance("left")
    assert lake.advance("bottom") == "committed"


def test_a_view_of_a_source_and_of_a_view_of_it_takes_the_older_source(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle"]})
    lake.deliver("s")
    lake.advance("middle")
    lake.deliver("s")
    assert lake.advance("bottom") == "committed"
    assert {n: p.version for n, p in lake.recorded("bottom").items()} == {"p.s": 1, "p.middle": 1}


def test_a_middle_view_with_nothing_to_do_does_not_hold_up_the_bottom(tmp_path: Path) -> None:
    """`top` consumes a change that alters no row of its own: `middle` never hears of it."""
    lake = Lake(tmp_path, {"top": ["s"], "middle": ["top"], "bottom": ["middle", "s"]})
    lake.deliver("s")
    for view in ("top", "middle", "bottom"):
        lake.advance(view)
    lake.deliver("s")
    assert lake.advance("bottom") == "unchanged"
    lake.advance("top", changes=False)
    assert lake.advance("middle") == "unchanged"
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2
    assert lake.frontier("bottom") == {"p.s": 2}


def test_commits_of_others_that_change_no_row_hold_up_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle"]})
    for _ in range(2):
        lake.deliver("s")
        lake.advance("middle")
        lake.advance("bottom")
    for name in ("s", "middle", "bottom"):
        lake.optimise(name)
    assert lake.advance("middle") == "unchanged"
    assert lake.advance("bottom") == "unchanged"
    lake.deliver("s")
    assert [lake.advance(view) for view in ("middle", "bottom")] == ["committed", "committed"]


def test_an_input_never_goes_back_behind_what_was_read(tmp_path: Path) -> None:
    """Not even for another input's sake: what agrees with `middle` is read as it was before."""
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle", "t"]})
    lake.deliver("s")
    lake.advance("middle")
    lake.deliver("s", changes=False)
    lake.advance("bottom")
    before = lake.recorded("bottom")
    assert before["p.s"].version == 2
    lake.deliver("s")
    lake.deliver("t")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom") == {**before, "p.t": lake.head("t").pin}
    lake.advance("middle")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 3


def test_of_states_with_the_same_rows_the_last_is_read(tmp_path: Path) -> None:
    """It was compacted, so a vacuum that leaves it may take the files of the one before."""
    lake = Lake(tmp_path, {**DIAMOND, "beside": ["s", "right"]})
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    lake.optimise("s")
    lake.optimise("left")
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == lake.advance("beside") == "committed"
    assert lake.recorded("bottom")["p.left"].version == 3
    assert lake.recorded("beside")["p.s"].version == 3


@pytest.mark.parametrize("replaced", ["left", "s"])
def test_a_replaced_input_does_not_count_as_seen(tmp_path: Path, replaced: str) -> None:
    lake = Lake(tmp_path, {"left": ["s"], "below": ["left"]})
    lake.deliver("s")
    lake.advance("left")
    lake.advance("below")
    known = lake.frontier("below")
    folder = Path(lake.uri(replaced))
    folder.rename(folder.with_name("gone"))
    create(lake.uri(replaced), ID_AND_V, a_position(0, kind="ingest"))
    assert lake.frontier("below") == known
