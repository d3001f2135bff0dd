"""Configurations to declare tables in."""

from tests.support.declaring import write, wrong

__all__ = ["write", "wrong"]
