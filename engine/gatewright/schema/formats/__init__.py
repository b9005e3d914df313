"""The providers' formats for tools, by name and loaded on demand, and the number of tokens that tools cost.

A tool costs the tokens of its JSON as sent, without blanks between values; a list costs the sum of its tools. For
OpenAI the count is exact in its encoding `o200k_base` (the service does not publish how it rewrites the JSON before the
model reads it, so a bill may differ). Other providers publish no tokenizer: for them the same count is an estimate, and
says so. Without the tokenizer's package every four bytes of UTF-8 count as one token, an estimate too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from gatewright.base.errors import NotSupported
from gatewright.base.frozen import frozen
from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.schema.formats.format import CallReader, Format, ProviderLint
    from gatewright.schema.operation import ToolListing


__all__ = ["FORMATS", "CallReader", "Format", "ProviderLint", "ToolListing", "format_named"]

door(
    __name__,
    {
        "gatewright.schema.formats.format": ("CallReader", "Format", "ProviderLint"),
        "gatewright.schema.operation": ("ToolListing",),
    },
)

_HOMES = {
    "mcp": ("gatewright.schema.formats.jsonschema", "MCP"),
    "openai": ("gatewright.schema.formats.openai", "OPENAI"),
    "openai-responses": ("gatewright.schema.formats.openai", "OPENAI_RESPONSES"),
    "anthropic": ("gatewright.schema.formats.jsonschema", "ANTHROPIC"),
    "gemini": ("gatewright.schema.formats.gemini", "GEMINI"),
    "genai": ("gatewright.schema.formats.jsonschema", "GENAI"),
}


class _Formats(Mapping[str, "Format"]):
    """The formats by name, in the order in which users see them."""

    def __getitem__(self, name: str) -> Format:
        module, constant = _HOMES[name]
        return cast("Format", getattr(import_module(module), constant))

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


FORMATS: Mapping[str, Format] = _Formats()


def format_named(name: str) -> Format:
    """Return the format called ``name``. Raises NotSupported for any other."""
    found = FORMATS.get(name)
    if found is None:
        raise NotSupported(f"the format `{name}` is not supported; there are {', '.join(FORMATS)}")
    return found


Tokenize = Callable[[list[str]], list[int]]

ENCODING = "o200k_base"
BYTES_RULE = "4 bytes a token"
_EXACT = frozenset({"openai", "openai-responses"})
_MAX_KEPT = 65_536


@frozen
class TokenCount:
    """Tokens by tool and in all; ``exact`` in ``encoding``, else an estimate made with it.

    ``unrestricted``: the cost of the list without any limits; None if the caller did not ask.
    """

    total: int
    per_tool: Mapping[str, int]
    exact: bool
    encoding: str
    unrestricted: int | None = None

    @property
    def saved(self) -> int | None:
        """The tokens that the unrestricted list would cost more."""
        return None if self.unrestricted is None else self.unrestricted - self.total

    @property
    def saving(self) -> float | None:
        """The share of the unrestricted list's tokens that filtering saves, 0 to 1."""
        if self.unrestricted is None:
            return None
        return (self.unrestricted - self.total) / self.unrestricted if self.unrestricted else 0.0


class TokenCounter:
    """Counts with one tokenizer, or by bytes without one, and remembers the counts.

    The memory goes by listing, for the same agent, and by text, for other agents with the same view.
    """

    def __init__(self, tokenize: Tokenize | None) -> None:
        self._tokenize = _by_bytes if tokenize is None else tokenize
        self._has_tokenizer = tokenize is not None
        self._by_text: dict[bytes, int] = {}

    def count(
        self, listings: Sequence[ToolListing], form: Format, unrestricted: Sequence[ToolListing] | None = None
    ) -> TokenCount:
        """Count the tokens of ``listings`` in a format, and of ``unrestricted`` for comparison."""
        counts = self._counts(listings, form)
        per_tool = {listing.name: count for listing, count in zip(listings, counts, strict=True)}
        before = None if unrestricted is None else sum(self._counts(unrestricted, form))
        exact = self._has_tokenizer and form.name in _EXACT
        return TokenCount(sum(counts), per_tool, exact, ENCODING if self._has_tokenizer else BYTES_RULE, before)

    def _counts(self, listings: Sequence[ToolListing], form: Format) -> list[int]:
        names = form.names(listings)
        keys = [(self, form.name, names[listing.name]) for listing in listings]
        found: list[int | None] = [listing.made.get(key) for listing, key in zip(listings, keys, strict=True)]
        missing = [index for index, count in enumerate(found) if count is None]
        texts = [_text(form, listings[index], names[listings[index].name]) for index in missing]
        for index, count in zip(missing, self._count_texts(texts), strict=True):
            listings[index].made[keys[index]] = found[index] = count
        return [count or 0 for count in found]

    def _count_texts(self, texts: list[str]) -> list[int]:
        keys = [hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest() for text in texts]
        known = {key: self._by_text[key] for key in keys if key in self._by_text}
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        made = dict(zip(fresh, self._tokenize(list(fresh.values())), strict=True)) if fresh else {}
        if len(self._by_text) + len(made) > _MAX_KEPT:
            self._by_text.clear()
        self._by_text.update(made)
        return [made[key] if key in made else known[key] for key in keys]


def count_tokens(
    listings: Sequence[ToolListing], form: Format | str, unrestricted: Sequence[ToolListing] | None = None
) -> TokenCount:
    """Count the tokens of ``listings`` in a format, and of ``unrestricted`` for comparison. Raises NotSupported.

    The first count in a process loads the encoding, which takes about a second.
    """
    return _common_counter().count(listings, format_named(form) if isinstance(form, str) else form, unrestricted)


def count_text(text: str) -> int:
    """Count the tokens of a text: exact for OpenAI with the tokenizer, else an estimate."""
    return (_by_bytes if find_spec("toktok") is None else count_texts)([text])[0]


def _text(form: Format, listing: ToolListing, name: str) -> str:
    """Return the JSON to send; half of a surrogate pair, which cannot be sent, becomes a question mark."""
    text = json.dumps(form.fit(listing).body(name), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=1)
def _common_counter() -> TokenCounter:
    return TokenCounter(None if find_spec("toktok") is None else count_texts)


def count_texts(texts: list[str]) -> list[int]:
    """Count the tokens of each text in `ENCODING`; raises ImportError without the tokenizer's package."""
    import toktok

    return toktok.batch_count(texts, ENCODING)


def _by_bytes(texts: list[str]) -> list[int]:
    return [-(-len(text.encode("utf-8")) // 4) for text in texts]
