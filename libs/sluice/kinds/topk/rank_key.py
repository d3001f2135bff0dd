"""A top-k's sort key: an expression of the row, or a user's Python function of expressions.

`shop.scores:worth(price, units) desc` sorts by the result of `worth` for a row. The function comes
from a module that the project lists, and must be deterministic.
"""

import re
from typing import Any, Self

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Expression, SortKey

OWN = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*(\(.*)", re.DOTALL)


class RankKey(SortKey):
    """A sort key; `function` is `module:name`, or '' where `expression` itself is sorted by.

    For a function, `expression` is the struct of its `arguments`: what it reads.
    """

    function: str = ""
    arguments: tuple[Expression, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        found = OWN.fullmatch(text)
        if not found:
            return cls.of(syntax.parse_as(text, exp.Ordered))
        ordered = syntax.parse_as(f"struct{found[2]}", exp.Ordered)
        return cls._of_function(found[1], ordered)

    @classmethod
    def spelled(cls, meant: Any) -> str:
        if "function" not in meant:
            return super().spelled(meant)
        call = f"{meant['function']}({', '.join(meant['arguments'])})"
        return super().spelled({**meant, "expression": call})

    @classmethod
    def _of_function(cls, function: str, ordered: syntax.Tree) -> Self:
        call = ordered.this
        if not isinstance(call, exp.Anonymous) or not call.expressions:
            raise ValueError(
                f"{function} takes expressions of the row, and only asc or desc, nulls first or "
                "nulls last may follow it"
            )
        arguments = tuple(Expression.parse(syntax.render(tree)) for tree in call.expressions)
        read = Expression.of(call, f"{function}({', '.join(map(str, arguments))})")
        plain = cls.of(ordered)
        return plain.model_copy(
            update={"expression": read, "function": function, "arguments": arguments}
        )
