"""Upkeep of a window store: sealing closed slices, and keeping the files of open ones few."""

from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.writing.filing import Slice, is_in_order
from sluice.engine.committing.upkeep import Kept
from sluice.kinds.window_store.cuts import in_time


class StoreKept(Kept):
    """Table of a window store."""

    is_tidied = True

    def crowded(self, filing: Filing) -> list[Slice]:
        return [s for s in filing.slices if self._is_crowded(s)]

    def unsealed(self, filing: Filing) -> list[Slice]:
        """Return older slices that are not one or a few sorted files, because rows came late."""
        by_time = sorted(filing.slices, key=lambda s: in_time(s.number or 0))
        return [s for s in by_time[:-1] if self._is_unsealed(s)]

    def _is_crowded(self, slice_: Slice) -> bool:
        most = slice_.usual_files(self.limits) - 1 + self.limits.slice_files
        return len(slice_.paths) >= most or slice_.is_worn

    def _is_unsealed(self, slice_: Slice) -> bool:
        if len(slice_.paths) > slice_.usual_files(self.limits):
            return True
        if slice_.is_small(self.limits):
            return False
        return not is_in_order(self.uri, slice_.paths, self.order[0].column)
