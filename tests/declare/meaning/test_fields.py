"""Texts of a declaration, read back from what a table's meaning records of them."""

import json

import pytest

from sluice.declare.meaning import canonical
from sluice.kinds.over import WindowedExpression
from sluice.kinds.topk import RankKey
from sluice.language.expression import Aggregate, Expression, SortKey, Written

TEXTS = [
    (Expression, "UPPER(name)"),
    (SortKey, "price"),
    (SortKey, "price desc"),
    (SortKey, "price nulls last"),
    (SortKey, "price desc nulls first"),
    (RankKey, "price + 1 desc"),
    (RankKey, "shop.scores:worth(price, id + 1) desc nulls first"),
    (Aggregate, "count(*)"),
    (Aggregate, "count(x)"),
    (Aggregate, "first(x ORDER BY at desc, id)"),
    (Aggregate, "sum(x) FILTER (WHERE y > 1)"),
    (Aggregate, "percentile(x, 0.5)"),
    (Aggregate, "approx_top_k(x, 3)"),
    (Aggregate, "shop.sums:Total(x)"),
    (WindowedExpression, "x - LAG(x, 1) OVER w"),
    (WindowedExpression, "SUM(x) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"),
    (WindowedExpression, "SUM(x) OVER p / SUM(x) OVER w + SUM(x) OVER p"),
    (WindowedExpression, "ROW_NUMBER() OVER w"),
]


@pytest.mark.parametrize(("model", "text"), TEXTS, ids=lambda one: getattr(one, "__name__", one))
def test_what_is_recorded_says_what_users_write(model: type[Written], text: str) -> None:
    recorded = json.loads(json.dumps(canonical(model.parse(text))))
    assert model.spelled(recorded) == text
