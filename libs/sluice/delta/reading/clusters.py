"""Dense spans of whole numbers, by which files are skipped.

New keys are often far from the changed ones. One span from the least to the greatest would admit
all files in between.
"""

import pyarrow as pa
import pyarrow.compute as pc

MOST = 16

KeyBounds = tuple[int, int]


def clusters(values: pa.ChunkedArray | pa.Array) -> list[KeyBounds]:
    """Return the least and greatest value of at most MOST clusters, in order; nulls are ignored.

    They are split at the widest gaps.
    """
    known = pc.unique(values).drop_null()
    ordered = known.take(pc.sort_indices(known)).to_numpy(zero_copy_only=False)
    if not len(ordered):
        return []
    gaps = ordered[1:] - ordered[:-1]
    ends = sorted(gaps.argsort()[::-1][: MOST - 1])
    firsts = [0, *(int(end) + 1 for end in ends)]
    lasts = [*(int(end) for end in ends), len(ordered) - 1]
    return [(int(ordered[a]), int(ordered[b])) for a, b in zip(firsts, lasts, strict=True)]
