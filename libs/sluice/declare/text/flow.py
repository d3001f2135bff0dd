"""Values in `{...}` and `[...]` that their own commas have cut.

YAML ends a value there at every comma outside quotes. `{a: coalesce(x, y)}` gives the value
`coalesce(x` and a key `y)` without a value.
"""

from itertools import accumulate, takewhile

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import ScalarString


def unclosed(text: str) -> int:
    """Count the parentheses open at the text's end; below 0 if some were never opened."""
    return text.count("(") - text.count(")")


def split_by_commas(node: CommentedMap | CommentedSeq) -> str:
    """Return the first value cut by commas, put together again; '' if there is none."""
    if not node.fa.flow_style():
        return ""
    parts = _parts(node)
    for i, (value, _) in enumerate(parts):
        rest = [part for part, is_bare in parts[i + 1 :] if is_bare]
        joined = accumulate(rest, "{}, {}".format, initial=value)
        whole = next((text for text in joined if unclosed(text) <= 0), "")
        if unclosed(value) > 0 and whole:
            return whole
        if value and isinstance(node, CommentedMap) and (words := _words(parts[i + 1 :])):
            return ", ".join([value, *words])
    return ""


def _words(parts: list[tuple[str, bool]]) -> list[str]:
    """Return the first texts of several words: as keys without a value, they were one's rest."""
    return [text for text, _ in takewhile(lambda part: part[1] and " " in part[0], parts)]


def _parts(node: CommentedMap | CommentedSeq) -> list[tuple[str, bool]]:
    """Return unquoted texts in order, each with whether it may continue the one before it."""
    if isinstance(node, CommentedSeq):
        return [(_bare(item), bool(_bare(item))) for item in node]
    pairs = node.items()
    return [(_bare(k), bool(_bare(k))) if v is None else (_bare(v), False) for k, v in pairs]


def _bare(value: object) -> str:
    is_bare = isinstance(value, str) and not isinstance(value, ScalarString)
    return str(value) if is_bare else ""
