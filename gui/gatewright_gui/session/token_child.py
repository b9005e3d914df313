"""The process that counts tokens: loading a vocabulary holds up every thread of its process for half a second.

It reads texts from its input and writes their counts, one JSON array a line, until the input ends.
"""

import json
import sys
from typing import TextIO

from gatewright.workspace.api import count_texts


def serve(asked: TextIO, answered: TextIO) -> None:
    """Count until there is nothing more to read."""
    for line in asked:
        counts = count_texts(json.loads(line))
        answered.write(f"{json.dumps(counts)}\n")
        answered.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
