"""Options that several commands share."""

import click
import pytest
from click.testing import CliRunner

from sluice.terminal.options import format_option


@click.command()
@format_option
def shown(format_):
    click.echo(repr(format_))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([], "<Format.TABLE: 'table'>"),
        (["--json"], "<Format.JSON: 'json'>"),
        (["--format", "json"], "<Format.JSON: 'json'>"),
        (["--format", "csv"], "<Format.CSV: 'csv'>"),
    ],
)
def test_a_format_is_one_of_formats_by_either_option(given, found):
    assert CliRunner().invoke(shown, given).output.strip() == found
