"""Pieces of upkeep, compared with plain loops over every file, row group and key."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import pytest

from sluice.delta.upkeep.pieces import (
    CHANGED,
    FileLayout,
    Piece,
    Take,
    pack,
    plan_gathering,
    plan_merging,
    plan_merging_covers,
)
from sluice.limits import Limits

LIMITS = Limits(file_rows=20, piece_bytes=60, small_files=3)
Span = tuple[float, float]  # from a rank up to another one
EVERYTHING = (float("-inf"), float("inf"))
SEEDS = range(200)


def draw_file(chance: Random, path: str, first: int, last: int) -> FileLayout:
    groups = chance.choice([1, 1, 2, 3])
    inner = sorted(chance.randint(first, last) for _ in range(groups - 1))
    most = chance.choice([1, 10, 30])
    sizes = tuple((chance.randint(0, most), chance.randint(1, most)) for _ in range(groups))
    marked = chance.choice([0, 0, chance.randint(1, 10)])
    return FileLayout(path, sum(rows for rows, _ in sizes), marked, (first, *inner, last), sizes)


def draw_files(seed: int) -> list[FileLayout]:
    """Return files side by side, that touch or not, others over them, and unsorted ones."""
    chance, files, end = Random(seed), list[FileLayout](), 0
    for i in range(chance.randint(1, 6)):
        first = end + chance.randint(0, 2)
        end = first + chance.randint(0, 6)
        files.append(draw_file(chance, f"ground{i}", first, end))
    for i in range(chance.randint(0, 4)):
        first, last = sorted(chance.choices(range(end + 3), k=2))
        files.append(draw_file(chance, f"cover{i}", first, last))
    for i in range(chance.choice([0, 0, 1, 3])):
        size = ((chance.randint(0, 20), chance.randint(1, 40)),) * chance.randint(1, 3)
        files.append(FileLayout(f"unsorted{i}", sum(r for r, _ in size), 0, (), size))
    chance.shuffle(files)
    return files


def split(files: Sequence[FileLayout]) -> tuple[list[FileLayout], list[FileLayout]]:
    """Return the ground in order, densest files first chosen, and the covers."""
    ground = list[FileLayout]()
    for file in sorted(files, key=lambda f: -f.rows / (f.starts[-1] - f.starts[0] + 1)):
        low, high = file.starts[0], file.starts[-1]
        if all(high < one.starts[0] or one.starts[-1] < low for one in ground):
            ground.append(file)
    covers = [file for file in files if file not in ground]
    return sorted(ground, key=lambda f: f.starts[0]), covers


def takes_of(files: Sequence[FileLayout], span: Span) -> list[Take]:
    found = []
    for file in files:
        keys = enumerate(pairwise(file.starts))
        inside = [g for g, (first, last) in keys if first < span[1] and last >= span[0]]
        if there := [group for group in inside if file.sizes[group][0]]:
            found.append(Take(file.path, range(there[0], there[-1] + 1)))
    return found


def bytes_of(files: Sequence[FileLayout], takes: Sequence[Take]) -> int:
    by_path = {file.path: file for file in files}
    return sum(by_path[t.path].sizes[g][1] for t in takes if t.groups for g in t.groups)


def is_due(file: FileLayout, covering: float) -> bool:
    changed, rows = file.marked + covering, file.rows + covering
    return (
        changed > CHANGED * (rows + file.marked)
        or (rows < LIMITS.file_rows / 2 and file.bytes < LIMITS.piece_bytes / 4)
        or file.rows + file.marked > 2 * LIMITS.file_rows
    )


def spread(covers: Sequence[FileLayout], spans: Sequence[Span]) -> list[float]:
    """Return the covers' rows over each span, those of a row group in equal parts."""
    found = [0.0] * len(spans)
    for cover in covers:
        for (rows, _), (first, last) in zip(cover.sizes, pairwise(cover.starts), strict=True):
            reached = [i for i, (low, high) in enumerate(spans) if first < high and last >= low]
            for i in reached:
                found[i] += rows / len(reached)
    return found


def segments_of(files: Sequence[FileLayout]) -> Iterator[tuple[Span, bool]]:
    """Yield each file's keys, and the gap behind them, in parts that are small enough."""
    ground, covers = split(files)
    cuts = [EVERYTHING[0], *(file.starts[0] for file in ground[1:]), EVERYTHING[1]]
    spans: list[Span] = list(pairwise(cuts))
    for file, span, covering in zip(ground, spans, spread(covers, spans), strict=False):
        cut = set(span)
        if bytes_of(files, takes_of([*ground, *covers], span)) > LIMITS.piece_bytes:
            begins = {first for one in files for first in one.starts[:-1]}
            cut |= {first for first in begins if span[0] < first < span[1]}
        for part in pairwise(sorted(cut)):
            yield part, is_due(file, covering)


def merged(files: Sequence[FileLayout]) -> list[Piece]:
    ground, covers = split(files)
    ordered, joined = [*ground, *covers], list[Span]()
    open_end = None
    for span, due in segments_of(files):
        wider = (joined[-1][0], span[1]) if joined else span
        fits = bytes_of(files, takes_of(ordered, wider)) <= LIMITS.piece_bytes
        if due and joined and open_end == span[0] and fits:
            joined[-1] = wider
        elif due:
            joined.append(span)
        open_end = span[1] if due else None
    by_path, pieces = {file.path: file for file in files}, []
    for low, high in joined:
        takes = takes_of(ordered, (low, high))
        worn = [
            t
            for t in takes
            if by_path[t.path].marked
            or by_path[t.path].rows + by_path[t.path].marked > 2 * LIMITS.file_rows
        ]
        if len(takes) > 1 or worn:
            start, end = (None if abs(b) == EVERYTHING[1] else int(b) for b in (low, high))
            pieces.append(Piece(tuple(takes), start, end, bytes_of(files, takes)))
    return pieces


def sorted_among(files: Sequence[FileLayout]) -> list[FileLayout]:
    return [file for file in files if file.starts]


def total(files: Sequence[FileLayout]) -> int:
    return sum(size for file in files for _, size in file.sizes)


@pytest.mark.parametrize("several", [SEEDS[i::4] for i in range(4)])
def test_pieces_join_due_segments_with_all_that_lies_over_them(several):
    for seed in several:
        files = draw_files(seed)
        found = plan_merging(files, LIMITS)
        if total(files) <= LIMITS.piece_bytes:
            assert found == [Piece(tuple(Take(file.path) for file in files))]
        else:
            assert found == merged(sorted_among(files)), seed
        _, covers = split(sorted_among(files))
        assert plan_merging_covers(files, LIMITS) == merged(covers), seed


def test_a_table_of_exactly_a_piece_is_one_piece():
    files = [FileLayout(p, 30, 0, (i, i), ((30, 30),)) for i, p in enumerate("ab")]
    assert plan_merging(files, LIMITS) == [Piece((Take("a"), Take("b")))]
    assert plan_gathering([FileLayout("u", 60, 0, (), ((60, 60),))], LIMITS) == []
    assert plan_gathering([FileLayout("u", 61, 0, (), ((61, 61),))], LIMITS) != []


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_packing_takes_each_group_once_and_as_many_as_fit(seed):
    files = draw_files(seed)
    pieces = list(pack(files, LIMITS.piece_bytes))
    groups = [[(t.path, g) for t in piece.takes for g in t.groups or ()] for piece in pieces]
    size = {(f.path, g): size for f in files for g, (_, size) in enumerate(f.sizes)}
    assert [one for some in groups for one in some] == list(size)
    for some, following in zip(groups, [*groups[1:], None], strict=True):
        held = sum(size[one] for one in some)
        assert held <= LIMITS.piece_bytes or len(some) == 1
        assert following is None or held + size[following[0]] > LIMITS.piece_bytes


def test_unsorted_files_and_covers_are_gathered_first_if_they_are_many_or_most_of_a_piece():
    seen = set()
    for seed in SEEDS:
        files = draw_files(seed)
        _, covers = split(sorted_among(files))
        small = [f for f in covers if f.rows < LIMITS.file_rows / 2 and f.bytes < 15]
        by_bytes = -(-total(covers) // LIMITS.piece_bytes)
        by_rows = -(-sum(f.rows for f in covers) // LIMITS.file_rows)
        largest = sum(max(size for _, size in f.sizes) for f in covers)
        chosen = [file for file in files if not file.starts]
        if largest > LIMITS.piece_bytes / 2 and len(covers) > max(by_bytes, by_rows):
            chosen, why = chosen + covers, "covers"
        elif len(small) >= LIMITS.small_files:
            chosen, why = chosen + small, "small"
        else:
            why = "unsorted"
        is_one = total(files) <= LIMITS.piece_bytes
        expected = [] if is_one else list(pack(chosen, LIMITS.piece_bytes))
        assert plan_gathering(files, LIMITS) == expected, seed
        seen.add(why if expected else "none")
    assert seen == {"covers", "small", "unsorted", "none"}
