"""Faults of a CSV file's quotes: one that is never closed, or text behind a closing one.

Spark's parser takes such a text as far as it goes, or with its quotes. The whole file is therefore
searched, at the speed of a regular expression.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Self

CHUNK = 1 << 22


@dataclass(frozen=True)
class Quotes:
    """Patterns for the rest of a quoted text, and for whole ones with what is between them.

    `strict` is `outside` where nothing stands between a closing quote and a separator; `closed`
    follows a quote that closes so.

    A quote within a text that does not begin with one is an ordinary character.
    """

    quote: str
    escape: str
    encoding: str
    inside: re.Pattern[str]
    outside: re.Pattern[str]
    strict: re.Pattern[str]
    closed: re.Pattern[str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        quote, escape = options.get("quote", '"'), options.get("escape", '"') or "\0"
        separator = options.get("sep", options.get("delimiter", ","))
        encoding = options.get("encoding", options.get("charset", "utf-8"))
        q, e, s = re.escape(quote), re.escape(escape), re.escape(separator)
        pair = f"{q}{q}" if e == q else f"{e}."
        body = f"[^{q}{e}]*+(?:{pair}[^{q}{e}]*+)*+"
        begins, goes_on = rf"(?:(?<=[\r\n])|(?<={s}))", rf"(?<![\r\n])(?<!{s})"
        closed = rf"(?=[ \t]*(?:[\r\n]|{s}|\Z))"
        outside, strict = (
            f"(?:[^{q}]++|{begins}{q}{body}{q}{end}|{goes_on}{q})*+" for end in ("", closed)
        )
        patterns = (rf"{body}({q})?", outside, strict, closed)
        return cls(quote, escape, encoding, *(re.compile(p, re.DOTALL) for p in patterns))

    def faults(self, stream: BinaryIO) -> tuple[bool, bool]:
        """Return whether the file ends inside quotes, and whether text follows a closing quote."""
        is_inside, has_odd, last = False, False, "\n"
        for chunk in self._chunks(stream):
            is_inside, is_odd = self._go_on(last + chunk, is_inside)
            has_odd, last = has_odd or is_odd, chunk[-1:] or last
        return is_inside, has_odd

    def _go_on(self, text: str, is_inside: bool) -> tuple[bool, bool]:
        """Return the faults of `text`, which starts with the character before it."""
        if self.quote not in text:
            return is_inside, False
        at, is_odd = 1, False
        if is_inside:
            found = self.inside.match(text, at)
            if found is None or not found[1]:
                return True, False
            at = found.end()
            is_odd = self.closed.match(text, at) is None
        strict = _end(self.strict, text, at)
        end = _end(self.outside, text, strict)
        return end < len(text), is_odd or end > strict

    def _chunks(self, stream: BinaryIO) -> Iterator[str]:
        """Yield texts that end in no quote or space, so that what follows is seen with them."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        held = ""
        while data := stream.read(CHUNK):
            text = held + decoder.decode(data)
            kept = text.rstrip(f"{self.quote}{self.escape}\\ \t")
            held = text[len(kept) :]
            yield kept
        yield held


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
