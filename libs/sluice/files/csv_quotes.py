"""Faults of a CSV file's quotes: one that is never closed, or text after a closing one.

Spark's parser cuts such a value, or keeps its quotes. It drops control characters after a closing
quote, and null characters inside quotes. The whole file is therefore searched, at the speed of a
regular expression.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Self

CHUNK = 1 << 22
BLANK = r"[\x00-\x20]"  # dropped by Spark's parser after a closing quote


@dataclass(frozen=True)
class Faults:
    """`is_cut`: the file ends inside quotes; `has_odd`: something follows a closing quote.

    `is_mixed`: a line feed occurs in a file whose lines end with bare carriage returns. `lost_in`:
    the line of the first value whose control characters would be dropped; 0 for none.
    """

    is_cut: bool = False
    has_odd: bool = False
    is_mixed: bool = False
    lost_in: int = 0


@dataclass(frozen=True)
class Quotes:
    """Patterns for the rest of a quoted text, and for whole ones with what is between them.

    `strict` is `outside` with only spaces between a closing quote and a separator, `kept` is
    `outside` without dropped characters. `closed` and `lost` follow a quote that closes so.

    A quote within a text that does not begin with one is an ordinary character, and so is one in a
    comment.
    """

    options: Mapping[str, str]
    line_end: str
    inside: re.Pattern[str]
    outside: re.Pattern[str]
    strict: re.Pattern[str]
    kept: re.Pattern[str]
    closed: re.Pattern[str]
    lost: re.Pattern[str]

    @classmethod
    def of(cls, options: Mapping[str, str], line_end: str = "\n") -> Self:
        quote, escape = options.get("quote", '"'), options.get("escape", '"') or "\0"
        q, e, s = (re.escape(c) for c in (quote, escape, _separator(options)))
        # After several characters, Spark's parser doubles a quote at the end of a file.
        last = r"(?!\Z)" if len(_separator(options)) > 1 else ""
        pair = f"{q}{q}" if e == q else f"{e}."
        body = f"[^{q}{e}]*+(?:{pair}[^{q}{e}]*+)*+"
        begins, goes_on = rf"(?:(?<={line_end})|(?<={s}))", rf"(?<!{line_end})(?<!{s})"
        end = r"\r*\n|\r*\Z" if line_end == "\n" else r"\r|\Z"
        closed = rf"(?=[ \t]*(?:{end}|{s}))"
        lost = rf"(?!{closed})(?={BLANK}*?(?:{end}|{s}))"
        other, comment = _comment(options.get("comment", ""), line_end)
        whole = body.replace("]*+", r"\0]*+").replace(f"{e}.", rf"{e}[^\0]")
        outside, strict, kept = (
            f"(?:[^{q}{other}]++{comment}|{begins}{q}{inside}{q}{then}|{goes_on}{q}{last})*+"
            for inside, then in ((body, ""), (body, closed), (whole, f"(?!{lost})"))
        )
        patterns = (rf"{body}({q})?", outside, strict, kept, closed, lost)
        return cls(options, line_end, *(re.compile(p, re.DOTALL) for p in patterns))

    def faults(self, stream: BinaryIO) -> Faults:
        """Return the faults of a file's quotes."""
        found, last, line = Faults(), self.line_end, 1
        longest = len(_separator(self.options))
        for chunk in self._chunks(stream):
            whole = last + chunk
            here = self._go_on(whole, len(last), is_inside=found.is_cut)
            lost_in = found.lost_in or (here.lost_in and line + here.lost_in - 1)
            is_mixed = found.is_mixed or (self.line_end == "\r" and "\n" in chunk)
            found = Faults(here.is_cut, found.has_odd or here.has_odd, is_mixed, lost_in)
            line += chunk.count(self.line_end)
            last = whole[-longest:]
        return found

    def _go_on(self, text: str, start: int, *, is_inside: bool) -> Faults:
        """Return the faults of `text` from `start`; its lines are counted from there."""
        if not is_inside and text.find(self.options.get("quote", '"'), start) < 0:
            return Faults()
        at, is_odd, lost_at = start, False, -1
        if is_inside:
            found = self.inside.match(text, at)
            at = found.end() if found and found[1] else len(text)
            lost_at = text.find("\0", start, at)
            if not (found and found[1]):
                return Faults(True, lost_in=self._line(text, start, lost_at))
            is_odd = self.closed.match(text, at) is None
            lost_at = at if lost_at < 0 and self.lost.match(text, at) else lost_at
        strict = _end(self.strict, text, at)
        end = _end(self.outside, text, strict)
        if lost_at < 0 and (end > strict or "\0" in text):
            kept = _end(self.kept, text, at)
            lost_at = kept if kept < end or "\0" in text[end:] else -1
        lost_in = self._line(text, start, lost_at)
        return Faults(end < len(text), is_odd or end > strict, lost_in=lost_in)

    def _line(self, text: str, start: int, at: int) -> int:
        """Return the number of the line at `at`; 0 for a negative one."""
        return text.count(self.line_end, start, at) + 1 if at >= 0 else 0

    def _chunks(self, stream: BinaryIO) -> Iterator[str]:
        """Yield parts that end in no quote or space, so a quote stays with its next character.

        If there are comments, a text ends where a line ends.
        """
        options = self.options
        encoding = options.get("encoding", options.get("charset", "utf-8"))
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        quotes = options.get("quote", '"') + options.get("escape", '"') + _separator(options)
        odd = "".join(map(chr, range(33))) + quotes + "\\"
        held, is_first = "", True
        while data := stream.read(CHUNK):
            text = held + decoder.decode(data)
            if is_first and text:
                text, is_first = text.removeprefix("\ufeff"), False
            ends = text.rfind(self.line_end) + 1
            kept = text[:ends] if options.get("comment") else text.rstrip(odd)
            held = text[len(kept) :]
            yield kept
        yield held


def _separator(options: Mapping[str, str]) -> str:
    return options.get("sep", options.get("delimiter", ","))


def _comment(mark: str, line_end: str) -> tuple[str, str]:
    """Return the characters that may begin a comment, and alternatives that match one."""
    if not mark:
        return "", ""
    c = re.escape(mark)
    return c, f"|(?<={line_end}){c}[^{line_end}]*+|(?<!{line_end}){c}"


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
