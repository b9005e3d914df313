"""The app says that it does not show a shared state, and opens nothing."""

from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright_gui.session.opening import Opener
from tests.gui.session.opened import demo


def test_policy_on_a_shared_state_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = demo(tmp_path)
    monkeypatch.setenv("GATEWRIGHT_STATE", "postgresql://nobody@127.0.0.1:1/gates")

    with pytest.raises(WorkspaceError, match="unset GATEWRIGHT_STATE"):
        Opener().open(policy)
