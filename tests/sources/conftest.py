"""Configurations to declare tables in."""

from tests.support.declaring import shop, write, wrong

__all__ = ["shop", "write", "wrong"]
