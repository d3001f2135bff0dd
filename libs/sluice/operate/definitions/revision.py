"""Another configuration: a folder, or this one as of a revision of its git repository."""

import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice.declare.environment_folders import of_base
from sluice.declare.project import Project, load
from sluice.errors import ConfigError, MissingDependency, UsageError


@contextmanager
def other_project(config: str, against: str) -> Iterator[Project]:
    """Yield the project that a folder declares, or that `config` declared as of a revision.

    Its lake is that of the settings, in no environment. A folder of that name goes before a
    revision. Raises UsageError if there is neither, and
    ConfigError with the mistakes of the other configuration.
    """
    if Path(against).is_dir():
        yield load(against, environ=of_base())
        return
    with TemporaryDirectory(prefix="sluice-plan-") as folder:
        try:
            there = _extracted(Path(config).resolve(), against, Path(folder))
            yield load(there, environ=of_base())
        except ConfigError as error:
            named = [mistake.replace(f"{folder}/", f"{against}:") for mistake in error.mistakes]
            raise ConfigError(named, hint=error.hint) from None


def _extracted(config: Path, revision: str, folder: Path) -> Path:
    """Write the files of `config` as of a revision below a folder; return where they lie."""
    root = _git(config, "rev-parse", "--show-toplevel")
    if root is None:
        raise UsageError(
            f"{revision!r} is not a folder, and {config} is not in a git repository",
            hint="give --against a folder of configuration",
        )
    found = _git(config, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise UsageError(
            f"{revision!r} is neither a folder nor a revision of {_text(root)}",
            hint="name a branch, a tag or a commit; a branch of a remote may have to be fetched",
        )
    inside = config.relative_to(_text(root))
    files = _git(Path(_text(root)), "archive", "--format=tar", _text(found), "--", str(inside))
    if files is None:
        raise UsageError(f"{inside} is not in {revision!r}", hint="give --against a folder instead")
    with tarfile.open(fileobj=BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return folder / inside


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git writes; None if it fails."""
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise MissingDependency(
            "git, which finds the revision of --against, is not installed",
            hint="install git, or give --against a folder of configuration",
        ) from None
    return done.stdout if done.returncode == 0 else None


def _text(line: bytes) -> str:
    return line.decode().rstrip("\n")
