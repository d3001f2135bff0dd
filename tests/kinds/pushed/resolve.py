"""Resolution, as of any source."""

from sluice.sources.resolve import resolve

__all__ = ["resolve"]
