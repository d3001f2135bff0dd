"""Its class: all is as with any source."""

from tests.kinds.pushed import Pushed

from sluice.sources.kind import SourceKind


class PushedKind(SourceKind):
    model = Pushed
