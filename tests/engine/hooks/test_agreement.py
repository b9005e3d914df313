"""What a hook answers is what library and command line decide, whatever the call.

`tests.engine.hooks.agreement` tries more.
"""

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.engine.hooks import agreement


@pytest.mark.parametrize("inside", [False, True], ids=["policy around the project", "policy in the project"])
async def test_the_hook_answers_what_the_library_and_the_command_line_decide(tmp_path: Path, inside: bool) -> None:
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        world = agreement.make(tmp_path, Path(run), inside=inside)
        try:
            await agreement.start(world)
            assert agreement.differences(world, 150, Random().randrange(1 << 30)) == []
            assert str(world.project) in {body.get("folder") for _, _, body in world.rows("ToolInvoked")}
        finally:
            world.end()


def test_the_generated_calls_are_of_every_tool() -> None:
    dice = Random(1)
    seen = Counter(agreement.call(dice)[0] for _ in range(2_000))
    assert seen.keys() >= {one["name"] for one in agreement.TOOLS["tools"]}
