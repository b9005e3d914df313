"""Worlds that are closed again after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.tools.tool import Tool
from tests.engine.gate.world import POLICY, World

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[MakeWorld]:
    made: list[World] = []

    def make(text: str = POLICY, *tools: Tool, **more: Any) -> World:
        folder = tmp_path / f"world{len(made)}"
        folder.mkdir()
        made.append(World(folder, text, *tools, **more))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()
