"""A kind is known in its folder and in the registry; code elsewhere asks for what it needs."""

import re
from pathlib import Path

import sluice
from sluice.specs.registry import BUILT_IN

ROOT = Path(str(sluice.__file__)).parent
ROOMS = tuple(name.replace("sluice.", "", 1).replace(".", "/") for name in BUILT_IN)
NAMES = re.compile(
    r"top-?k|cogroup|(?<!File)(?<![a-z])lookup(?!error)|window_?stores?|dimension_?view",
    re.IGNORECASE,
)
# Messages that send a user to a kind of view.
ADVICE = {
    "orchestration/request.py",
    "serving/engine_sql.py",
    "specs/building.py",
    "specs/join_syntax.py",
    "specs/syntax.py",
}
# Still to move into their kinds' folders, or to be reworded. This list only gets shorter.
TO_MOVE = {
    "limits.py",
    "operators/cogroup.py",
    "operators/cogroup_change.py",
    "operators/cogroup_lateness.py",
    "operators/cogroup_rows.py",
    "operators/cogroup_view.py",
    "operators/lookup.py",
    "operators/own_order.py",
    "operators/ranking.py",
    "operators/topk.py",
    "operators/topk_change.py",
    "operators/window_store.py",
    "runtime/cogroup_batch.py",
    "runtime/cogroup_extension.py",
    "runtime/cogroup_reads.py",
    "runtime/cogroup_spreading.py",
    "runtime/guard.py",
    "runtime/invariants.py",
    "runtime/lookup_batch.py",
    "runtime/lookup_broadcast.py",
    "runtime/lookup_facts.py",
    "runtime/lookup_few.py",
    "runtime/lookup_many.py",
    "runtime/lookup_matching.py",
    "runtime/lookup_proof.py",
    "runtime/lookup_references.py",
    "runtime/run.py",
    "runtime/topk_batch.py",
    "runtime/topk_reads.py",
    "runtime/topk_shortlist.py",
    "runtime/topk_strategy.py",
    "runtime/window_store_upkeep.py",
    "runtime/workers.py",
}


def test_no_file_outside_knows_a_kind_by_name() -> None:
    files = [f for f in ROOT.rglob("*") if f.suffix in (".py", ".j2") and not _is_at_home(f)]
    naming = {_name(file) for file in files if NAMES.search(file.read_text("utf-8"))}
    naming |= {_name(file) for file in files if NAMES.search(file.stem)}
    assert naming - ADVICE == TO_MOVE


def _is_at_home(file: Path) -> bool:
    return _name(file).startswith((*(f"{room}/" for room in ROOMS), "specs/registry.py"))


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
