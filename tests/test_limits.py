"""Limits by the memory of a machine or a container."""

from pathlib import Path

import pytest

from sluice import limits
from sluice.limits import Limits, machine_memory

GB = 1_000_000_000


def test_limits_grow_with_memory_to_four_times_as_much() -> None:
    assert Limits.of_machine(2 * GB) == Limits.of_machine(6 * GB) == Limits()
    assert Limits.of_machine(12 * GB).held_bytes == 2 * Limits.held_bytes
    most = Limits.of_machine(24 * GB)
    assert most == Limits.of_machine(512 * GB)
    assert most.computed_here_bytes == 4 * Limits.computed_here_bytes
    assert most.delivered_bytes == 4 * Limits().delivered_bytes


def test_memory_is_that_of_the_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bound, unbound = tmp_path / "memory.max", tmp_path / "other.max"
    bound.write_text("123456789\n", encoding="ascii")
    unbound.write_text("max\n", encoding="ascii")
    monkeypatch.setattr(limits, "MEMORY", (str(tmp_path / "none"), str(unbound)))
    assert machine_memory() > 500_000_000
    monkeypatch.setattr(limits, "MEMORY", (str(unbound), str(bound)))
    assert machine_memory() == 123_456_789
