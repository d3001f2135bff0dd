"""End of a CSV file: inside quotes that were opened and never closed, or not.

Spark's parser returns such a text as far as it goes. The whole file is therefore searched, at the
speed of a regular expression.
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

    A quote within a text that does not begin with one is an ordinary character.
    """

    quote: str
    encoding: str
    inside: re.Pattern[str]
    outside: re.Pattern[str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        quote, escape = options.get("quote", '"'), options.get("escape", '"')
        separator = options.get("sep", options.get("delimiter", ","))
        encoding = options.get("encoding", options.get("charset", "utf-8"))
        q, e, start = re.escape(quote), re.escape(escape), rf"[\r\n{re.escape(separator)}]"
        pair = f"{q}{q}" if e == q else f"{e}."
        body = f"[^{q}{e}]*+(?:{pair}[^{q}{e}]*+)*+"
        outside = f"(?:[^{q}]++|(?<={start}){q}{body}{q}|(?<!{start}){q})*+"
        patterns = (rf"{body}({q})?", outside)
        return cls(quote, encoding, *(re.compile(p, re.DOTALL) for p in patterns))

    def are_open_at_end(self, stream: BinaryIO) -> bool:
        """True if the file ends inside quotes."""
        is_inside, last = False, "\n"
        for chunk in self._chunks(stream):
            is_inside = self._goes_on(last + chunk, is_inside)
            last = chunk[-1:] or last
        return is_inside

    def _goes_on(self, text: str, is_inside: bool) -> bool:
        """True if `text`, which starts with the character before it, ends inside quotes."""
        if self.quote not in text:
            return is_inside
        at = 1
        if is_inside:
            found = self.inside.match(text, at)
            if found is None or not found[1]:
                return True
            at = found.end()
        passed = self.outside.match(text, at)
        return passed is not None and passed.end() < len(text)

    def _chunks(self, stream: BinaryIO) -> Iterator[str]:
        """Yield texts that end in no quote, so that one of a pair is not taken for the end."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        held = ""
        while data := stream.read(CHUNK):
            text = held + decoder.decode(data)
            kept = text.rstrip(self.quote + "\\")
            held = text[len(kept) :]
            yield kept
        yield held
