"""Commands called on topics."""

from click.testing import CliRunner
from tests.sources.kafka.conftest import Topical

from sluice.cli.main import main


def called(lake: Topical, *arguments: str) -> tuple[int, str]:
    config = ("--config", str(lake.folder / "config"))
    done = CliRunner().invoke(main, [*arguments, *config])
    return done.exit_code, done.output
