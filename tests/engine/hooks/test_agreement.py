"""What a hook answers is what the library decides, whatever the call; `tests.engine.hooks.agreement` tries more."""

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.engine.hooks import agreement


async def test_the_hook_answers_what_the_library_decides(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        world = agreement.make(tmp_path, Path(run))
        try:
            await agreement.start(world)
            assert agreement.differences(world, 150, Random().randrange(1 << 30)) == []
        finally:
            world.end()


def test_the_generated_calls_are_of_every_tool() -> None:
    dice = Random(1)
    seen = Counter(agreement.call(dice)[0] for _ in range(2_000))
    assert seen.keys() >= {one["name"] for one in agreement.TOOLS["tools"]}
