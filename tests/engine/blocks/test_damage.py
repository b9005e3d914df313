"""Stored bytes that are damaged or mean harm: an error of ours for each, whatever Loro makes of them."""

import random
import struct
import time
from collections.abc import Callable

import loro
import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.blocks import CompositeSchema, ListSchema, Section, TextSchema
from gatewright.blocks.block import Block
from gatewright.blocks.part import Document
from gatewright.blocks.schema import Append
from tests.engine.blocks.test_edits import ANN
from tests.support.patience import in_time

_MASK = 0xFFFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


def _turned(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK


def checksum(data: bytes, seed: int) -> int:
    """XXH32 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) of at least 16 bytes."""
    one, two, three, four, five = _PRIMES
    lanes = [(seed + one + two) & _MASK, (seed + two) & _MASK, seed & _MASK, (seed - one) & _MASK]
    at = len(data) // 16 * 16
    for words in struct.iter_unpack("<4I", data[:at]):
        lanes = [
            _turned((held + word * two) & _MASK, 13) * one & _MASK for held, word in zip(lanes, words, strict=True)
        ]
    result = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) + len(data) & _MASK
    while at <= len(data) - 4:
        result = _turned((result + int.from_bytes(data[at : at + 4], "little") * three) & _MASK, 17) * four & _MASK
        at += 4
    for byte in data[at:]:
        result = _turned((result + byte * five) & _MASK, 11) * one & _MASK
    for bits, prime in ((15, two), (13, three), (16, 1)):
        result = (result ^ result >> bits) * prime & _MASK
    return result


def sealed(data: bytes) -> bytes:
    """``data`` with the checksum of its content, as somebody who means harm writes it."""
    return data[:16] + checksum(data[20:], int.from_bytes(b"LORO", "little")).to_bytes(4, "little") + data[20:]


def snapshot() -> bytes:
    block = Block.create(TextSchema(), "hello world\n" * 40, hand=ANN)
    block.edit(Append("more"), ANN)
    return block.snapshot()


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(40, len(data))]


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        changed[chance.randrange(20, len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def noise(data: bytes, chance: random.Random) -> bytes:
    return data[:22] + chance.randbytes(chance.randrange(20, 300))


def huge_counts(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(22, len(data))
    return data[:at] + b"\xff" * chance.randrange(1, 9) + data[at + 8 :]


@pytest.mark.parametrize("spoil", [cut, flipped, noise, huge_counts])
@pytest.mark.parametrize("finish", [bytes, sealed], ids=["as it is", "with a checksum that fits"])
def test_damaged_bytes_give_a_block_or_an_error_of_ours(
    spoil: Callable[[bytes, random.Random], bytes], finish: Callable[[bytes], bytes]
) -> None:
    chance, whole = random.Random(5), snapshot()
    assert sealed(whole) == whole
    refused = 0
    for _ in range(60):
        data = finish(spoil(whole, chance))
        began = time.process_time()
        try:
            block = Block.restore(TextSchema(), data)
            assert isinstance(block.value, str)
        except WorkspaceError:
            refused += 1
        assert in_time(time.process_time() - began, 2)
    assert refused


def test_a_sound_document_of_other_parts_is_refused() -> None:
    document = loro.LoroDoc()
    document.get_map("other").insert("key", "value")
    document.commit()
    with pytest.raises(WorkspaceError, match="damaged"):
        Block.restore(TextSchema(), bytes(document.export(loro.ExportMode.Snapshot())))
    with pytest.raises(WorkspaceError, match="damaged"):
        Block.restore(ListSchema(), snapshot())


def test_of_a_part_that_cannot_be_read_no_half_of_a_count_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loro_document = loro.LoroDoc()
    document = Document(loro_document, CompositeSchema((Section("a", ListSchema()), Section("b", ListSchema()))))
    loro_document.get_list("items:a").push("four")
    loro_document.get_list("items:b").push("seven77")
    whole, read = document.chars(), Document.items
    document.forget()

    def broken(self: Document, section: str) -> object:
        if section == "b":
            raise RuntimeError
        return read(self, section)

    with monkeypatch.context() as patch:
        patch.setattr(Document, "items", broken)
        with pytest.raises(RuntimeError):
            document.chars()
    assert document.chars() == whole > 0
