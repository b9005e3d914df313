"""A program that edits one block until it is killed, for tests of durability; run with the store's path and a seed.

It forks for every line that it reads (a seed), tells the child's pid, and the child edits at random and says what was
acknowledged: step, and digest of the content. So one start of Python serves many kills.
"""

import hashlib
import os
import random
import sys
from pathlib import Path

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.blocks import CompositeSchema, Field, FieldType, ListSchema, LogSchema, MapSchema, Section, TextSchema
from gatewright.blocks.schema import Append, Edit, Overwrite, Redo, Replace, SetField, Undo
from gatewright.memory import BlockService
from gatewright.memory.block_store import BlockStore
from gatewright.memory.blocktable import Note
from gatewright.policy.verdict import Action

OWNER = "agent:ann"
LABEL = "notes"
SCHEMA = CompositeSchema(
    (
        Section("t", TextSchema()),
        Section("m", MapSchema((Field("a", FieldType.TEXT), Field("n", FieldType.COUNTER)))),
        Section("i", ListSchema(max_items=50)),
        Section("log", LogSchema(max_items=500)),
    )
)


def digest(value: JsonValue) -> str:
    """SHA-256 of a block's content."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def some_edit(dice: random.Random) -> Edit:
    """Return a random edit; some are refused."""
    letters = "".join(dice.choices("abc \n", k=dice.randrange(1, 400)))
    return dice.choice(
        [
            Append(letters, "t"),
            Replace("ab", letters, section="t"),
            Replace("[bc]+", "x", regex=True, everywhere=True, section="t"),
            Overwrite(letters, "t"),
            SetField("a", letters, "m"),
            SetField("n", dice.randrange(1, 9), "m"),
            Append(letters, "i"),
            Overwrite([letters], "i"),
            Append(letters, "log"),
            Undo(),
            Undo(),
            Redo(),
        ]
    )


def edit_for_ever(path: Path, seed: int, author: str) -> None:
    """Edit and acknowledge on standard output."""
    dice = random.Random(seed)
    service = BlockService(BlockStore(path), owner=OWNER)
    while True:
        try:
            if dice.random() < 0.05:
                note: Note = "unpin" if dice.random() < 0.5 else "pin"
                step = service.note(LABEL, note, author=author, granted=Action.OVERWRITE).step
            else:
                step = service.edit(LABEL, some_edit(dice), author=author, granted=Action.OVERWRITE).step
        except ToolFailure:
            continue
        if step is not None:
            sys.stdout.write(f"{step.number} {digest(service.value_at(LABEL, step.number))}\n")
            sys.stdout.flush()


def main() -> None:
    """Start a child for every seed on standard input."""
    path = Path(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            edit_for_ever(path, int(line), f"agent:{line.strip()}")
        sys.stdout.write(f"pid {child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
