"""Arguments cut to the size that a row of the log may have. It looks for no secrets."""

from __future__ import annotations

from gatewright.base.jsonvalue import JsonValue

_TEXT, _KEY, _ITEMS, _DEPTH, _TOTAL, _NOTE = 2000, 100, 64, 8, 16_000, 400


def bounded(arguments: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """The arguments with long texts, long lists and deep values cut, and a note of each cut; at most about 16 kB."""
    budget = _Budget()
    kept = budget.fields(arguments, "", 1)
    return kept, budget.notes


class _Budget:
    def __init__(self) -> None:
        self.notes: list[JsonValue] = []
        self._left = _TOTAL

    def fields(self, value: dict[str, JsonValue], where: str, depth: int) -> dict[str, JsonValue]:
        kept: dict[str, JsonValue] = {}
        for key, item in value.items():
            if len(kept) >= _ITEMS or self._left <= 0:
                self._note(where, f"{len(value) - len(kept):,} of {len(value):,} fields left out")
                break
            name = _valid(key[:_KEY])
            self._left -= len(name)
            kept[name] = self._value(item, f"{where}/{name}", depth)
        return kept

    def _value(self, value: JsonValue, where: str, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, where)
        if isinstance(value, dict | list) and value and depth >= _DEPTH:
            self._note(where, "deeper values left out")
            return None
        if isinstance(value, dict):
            return self.fields(value, where, depth + 1)
        if isinstance(value, list):
            return self._items(value, where, depth + 1)
        self._left -= 8
        return value

    def _items(self, value: list[JsonValue], where: str, depth: int) -> list[JsonValue]:
        kept: list[JsonValue] = []
        for item in value:
            if len(kept) >= _ITEMS or self._left <= 0:
                self._note(where, f"{len(value) - len(kept):,} of {len(value):,} items left out")
                break
            kept.append(self._value(item, f"{where}/{len(kept)}", depth))
        return kept

    def _text(self, text: str, where: str) -> str:
        room = max(0, min(_TEXT, self._left))
        self._left -= min(len(text), room)
        if len(text) <= room:
            return text if text.isascii() else _valid(text)
        self._note(where, f"{len(text) - room:,} of {len(text):,} characters left out")
        return _valid(text[:room])

    def _note(self, where: str, what: str) -> None:
        if len(self.notes) < _ITEMS:
            self.notes.append(f"{where or '/'}: {what}"[:_NOTE])


def _valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
