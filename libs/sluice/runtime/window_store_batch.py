"""A batch of a window store: its rows go to the slices that the table has."""

from dataclasses import replace

from sluice.operators.window_store import WindowStoreRows
from sluice.runtime.batch import Batch
from sluice.runtime.node import Node
from sluice.storage.filing import slice_numbers
from sluice.storage.position import Head


class WindowStoreBatch(Batch):
    """One batch of a window store."""

    @classmethod
    def filed(cls, node: Node, at: Head | None) -> Node:
        store = node.operator
        assert isinstance(store, WindowStoreRows)
        if at is None or not store.is_gathered:
            return node
        numbers = slice_numbers(at.uri, at.version)
        longer = (n for n in numbers if len(str(n)) < store.grain.digits)
        return replace(node, operator=store.filed_in(longer))
