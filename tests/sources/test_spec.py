"""What a source's settings mean."""

import pytest

from sluice.sources import ForeignTable


@pytest.mark.parametrize(("written", "path"), [("crm", "crm"), ("crm//", "crm"), ("/", "/")])
def test_a_folder_is_the_same_with_a_slash_at_its_end(written: str, path: str) -> None:
    assert ForeignTable(path=written).path == path
