"""Check of regular expressions against Java's syntax, which Spark's RLIKE has. Starts no Java.

Differences in syntax are translated to Python's, then `re` checks the pattern. Where the two can't
be compared, the pattern passes. Spark then refuses a wrong one in the first batch. That is late,
but a wrongly refused pattern would have no workaround.
"""

import re
import warnings

ESCAPES = frozenset("tnrfaedDhHsSvVwWbBAGZzRXQkxucpPN0123456789")

# Java's syntax -> Python's, or an equivalent: one character, or nothing.
_SPELLINGS = (
    (re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL), "x"),
    (re.compile(r"\\x\{[0-9A-Fa-f]{1,6}\}|\\0[0-7]{1,3}|\\c[@-_a-z]|\\[1-9]\d*|\\e"), "x"),
    (re.compile(r"\\N\{[^{}]+\}|\\[pP](?:\{\^?[A-Za-z0-9_=]+\}|[A-Z])|\\[hHRXvV]"), "x"),
    (re.compile(r"\\b\{g\}|\\[GzZA]"), ""),
    (re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>"), r"(?P=\1)"),
    (re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>"), r"(?P<\1>"),
    (re.compile(r"\(\?<([=!])"), r"(?\1"),  # its limits depend on Java
    (re.compile(r"\(\?[idmsuxU-]+\)"), ""),
    (re.compile(r"\(\?[idmsuxU-]+:"), "(?:"),
    (re.compile(r"\{\d+(?:,\d*)?\}"), r"\g<0>"),
    (re.compile(r"\\.", re.DOTALL), r"\g<0>"),
)
_REFUSED = (
    (re.compile(r"\(\?P"), "a group is named by (?<name>...) and referenced by \\k<name>"),
    (re.compile(r"\(\?#"), "Java knows no comments (?#...)"),
    (re.compile(r"\(\?\("), "Java knows no conditions (?(1)...)"),
    (re.compile(r"\(\?[A-Za-z-]*[^idmsuxU\W-][A-Za-z-]*[:)]"), "the flags are i, d, m, s, u, x, U"),
    (re.compile(r"\{(?!\d+(?:,\d*)?\})"), "a brace that counts nothing is written \\{"),
)
_MANY = re.compile(
    r"\\[dDwWsShHvVRXpPN]"
)  # in a class: several characters, so not the end of a range


def problem(pattern: str) -> str:
    """Return the mistake in the pattern; '' if Java should accept it."""
    try:
        translated = _translated(pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(translated)
    except (ValueError, OverflowError, re.error) as error:
        return f"{pattern!r} is not a regular expression: {str(error).split(' at position')[0]}"
    return ""


def _translated(pattern: str) -> str:
    words, at = [], 0
    while at < len(pattern):
        word, at = _class(pattern, at) if pattern[at] == "[" else _word(pattern, at)
        words.append(word)
    return "".join(words)


def _word(pattern: str, at: int) -> tuple[str, int]:
    """Return the token at a place, in Python's syntax, and where it ends."""
    for refused, why in _REFUSED:
        if refused.match(pattern, at):
            raise ValueError(why)
    if pattern[at] == "\\":
        _check_escape(pattern[at + 1 : at + 2])
    for java, python in _SPELLINGS:
        if found := java.match(pattern, at):
            return found.expand(python), found.end()
    return pattern[at], at + 1


def _check_escape(letter: str) -> None:
    if not letter:
        raise ValueError("nothing follows the last \\")
    if letter.isascii() and letter.isalpha() and letter not in ESCAPES:
        raise ValueError(f"\\{letter} means nothing")


def _class(pattern: str, start: int) -> tuple[str, int]:
    """Return a character class; one that contains others becomes any character."""
    at = start + 1 + pattern.startswith("^", start + 1)
    first, words, is_plain = at, [pattern[start:at]], True
    while at < len(pattern):
        if pattern[at] == "]" and at > first:
            words.append("]")
            whole = "".join(words)
            return (whole if is_plain and any(words[1:-1]) else "x"), at + 1
        if pattern[at] == "[" or pattern.startswith("&&", at):
            is_plain = False
        word, at = _member(pattern, at)
        words.append(word)
    raise ValueError("a character class [ is not closed")


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "[":
        return _class(pattern, at)
    if pattern[at] != "\\":
        return pattern[at], at + 1
    word, end = _word(pattern, at)
    return ("" if _MANY.match(pattern, at) else word), end
