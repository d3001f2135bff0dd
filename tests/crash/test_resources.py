"""What a run needs and does not get: it fails loudly, or succeeds; never is a table wrong."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.crash.shop import Shop, day

DISK = 24_000_000
LEFT = (0, 4_000, 16_000, 40_000, 96_000)  # bytes, as far as each run gets


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_fails_a_run_and_harms_no_table(
    before: Shop, undisturbed: dict[str, Any], small_disk: Path
) -> None:
    shop = before.copy(small_disk / "shop")
    heard = []
    for left in LEFT:
        with nearly_full(small_disk, left):
            try:
                shop.run(day(1))
            except Exception as error:  # noqa: BLE001 - of whatever kind: it is heard
                heard.append(str(error))
        shop.check()
    assert heard, "the disk was never full"
    shop.run(day(1))
    shop.check()
    assert shop.state() == undisturbed


@contextlib.contextmanager
def nearly_full(disk: Path, left: int) -> Iterator[None]:
    """As long as it lasts, there is no more than that left on the disk."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b"\0" * max(free - left, 0))
    yield
    ballast.unlink()
