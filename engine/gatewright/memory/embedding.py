"""Vectors of texts that lie close together for similar meanings (the extra `embeddings`).

The model is the static one in the wheel of the package `wordllama`: a vector for each token, and their mean for a text.
The code reads its files directly, since importing the package would change the program's logging, and downloads
nothing. The first numbers of a vector are a shorter vector of the same text.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
from tokenizers import Tokenizer

from gatewright.record.database import Connection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

_PACKAGE = "wordllama"
_WEIGHTS, _TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
_NUMBERS = 256
_SHORT = 64
"""The number of a vector's first components in memory, which find the candidates."""
_STORED = np.dtype("<f2")
_ALIKE = 0.17
"""The cosine of texts with a similar meaning; fewer than 1 in 100 unrelated texts reach it."""
_NEAR = 0.09
"""The cosine of texts with a perhaps similar meaning; 7 in 100 unrelated texts reach it, so only the nearest count."""
_NEAREST = 3


class Embedder:
    """A maker of vectors for texts."""

    def __init__(self, tokenizer: Tokenizer, table: NDArray[np.float16]) -> None:
        self._tokenizer = tokenizer
        self._table = table

    def vector(self, text: str) -> Vector:
        """Return a text's vector, of length 1; zeros without any token."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        mean = self._table[ids].mean(axis=0, dtype=np.float32) if ids else np.zeros(_NUMBERS, np.float32)
        return _unit(mean)

    def encode(self, text: str) -> bytes:
        """Return the vector in its stored form."""
        return self.vector(text).astype(_STORED).tobytes()

    def index(self) -> VectorIndex:
        """Return an empty index for its vectors."""
        return VectorIndex()


class VectorIndex:
    """The vectors of one store in memory, at one generation of the store."""

    def __init__(self) -> None:
        self._generation = -1
        self._numbers = np.empty(0, np.int64)
        self._short = np.empty((0, _SHORT), np.float32)

    def follow(self, connection: Connection, generation: int) -> None:
        """Match the vectors of the store; within a generation only new ones are read."""
        first = int(self._numbers[-1]) + 1 if len(self._numbers) else 0
        if generation != self._generation:
            query = "SELECT number FROM note WHERE vector IS NOT NULL ORDER BY number"
            there = np.fromiter((row[0] for row in connection.execute(query)), np.int64)
            stay = np.isin(self._numbers, there, assume_unique=True)
            self._numbers, self._short = self._numbers[stay], self._short[stay]
            missing = np.setdiff1d(there, self._numbers, assume_unique=True)
            first = int(missing[0]) if len(missing) else first
        query = "SELECT number, vector FROM note WHERE vector IS NOT NULL AND number >= ? ORDER BY number"
        rows = connection.execute(query, (first,)).fetchall()
        if rows:
            numbers = np.array([row[0] for row in rows], np.int64)
            before = np.flatnonzero(self._numbers < first)  # vectors that come later are read again
            self._numbers = np.concatenate([self._numbers[before], numbers])
            short = _unit(_vectors([row[1] for row in rows])[:, :_SHORT])
            self._short = np.concatenate([self._short[before], short])
        self._generation = generation

    def nearest(self, connection: Connection, vector: Vector, limit: int) -> tuple[list[int], bool]:
        """Return the notes with a meaning close to the vector, the closest first, and True.

        Without any such note, return the few nearest and False.
        """
        alike = _products(self._short, _unit(vector[:_SHORT]))
        rough = np.argpartition(alike, -limit)[-limit:] if len(alike) > limit else np.arange(len(alike))
        numbers = self._numbers[rough].tolist()
        query = f"SELECT number, vector FROM note WHERE number IN ({', '.join('?' * len(numbers))})"
        rows = [row for row in connection.execute(query, numbers) if row[1] is not None]
        exact = _products(_vectors([row[1] for row in rows]), vector)
        order = np.argsort(-exact, kind="stable")
        found = [(rows[at][0], float(exact[at])) for at in order.tolist()]
        if alike_ones := [number for number, share in found if share >= _ALIKE]:
            return alike_ones, True
        near = [number for number, share in found[:_NEAREST] if share >= _NEAR]
        return near, not near


@cache
def load_embedder() -> Embedder | None:
    """Load the model; None if its package is missing or has another version."""
    spec = find_spec(_PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        weights, tokenizer = Path(place) / _WEIGHTS, Path(place) / _TOKENIZER
        if weights.is_file() and tokenizer.is_file():
            (table,) = load_file(weights).values()
            return Embedder(Tokenizer.from_file(str(tokenizer)), table)
    return None


def _vectors(stored: list[bytes]) -> Vector:
    """Stack the vectors, one row each; bytes of another length become zeros."""
    size = _NUMBERS * _STORED.itemsize
    joined = b"".join(one if len(one) == size else bytes(size) for one in stored)
    return np.frombuffer(joined, _STORED).reshape(-1, _NUMBERS).astype(np.float32)


def _products(rows: Vector, vector: Vector) -> Vector:
    """Compute the likeness of each row in this thread, since the threads of `@` wait for each other on busy cores."""
    return np.einsum("ij,j->i", rows, vector)


def _unit(vectors: Vector) -> Vector:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
