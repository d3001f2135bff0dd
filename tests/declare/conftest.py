"""A small shop to declare views over."""

from tests.support.declaring import mistakes, refusal, shop, table, write, wrong

__all__ = ["mistakes", "refusal", "shop", "table", "write", "wrong"]
