"""One open workspace at its door: edits, saving, outside changes, reloading, trust, export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused, PolicyInvalid, WorkspaceError
from gatewright.policy.agentedit import add_agent, describe_agent, remove_agent, rename_agent
from gatewright.policy.document import Policy
from gatewright.policy.edit import AgentChange, Change, Edit, FieldChange, SourceChange, inverse
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Permission, SafetyTier, Verdict
from gatewright.policyfile import write_policy_text
from gatewright.workspace import Workspace, create_workspace
from gatewright.workspace.policy_reader import load_policy

POLICY = """\
# Kept by hand.
gatewright = 1

[agents.archivist]   # files notes
tools = ["file"]
sources = ["docs"]

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = [ "read" , "list" ] }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws/docs").mkdir(parents=True)
    (tmp_path / "ws/docs/a.md").write_text("one\n", encoding="utf-8")
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "ws"


def opened(folder: Path, *, trust: bool = False) -> Workspace:
    return Workspace.open(folder, keys=folder.parent / "keys", trust=trust)


def on_disk(folder: Path) -> str:
    return (folder / "policy.toml").read_text(encoding="utf-8")


def test_opening_and_looking_write_nothing(folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    workspace = opened(folder)
    workspace.view("archivist").tools("mcp")
    workspace.decide("archivist", "file", {"op": "read", "path": "a.md"})
    assert workspace.selfcheck().differences == ()
    workspace.close()
    assert sorted(folder.parent.rglob("*")) == before


def test_edit_undo_save_leaves_the_file_byte_for_byte(folder: Path) -> None:
    workspace = opened(folder)
    edit = describe_agent(workspace.policy, "archivist", "reads")
    workspace.apply(edit)
    assert workspace.is_dirty
    assert workspace.text() != POLICY
    workspace.apply(inverse(edit))
    workspace.save()
    assert on_disk(folder) == POLICY
    assert not workspace.is_dirty


def test_a_saved_edit_touches_only_its_own_lines(folder: Path) -> None:
    workspace = opened(folder)
    workspace.apply(add_agent(workspace.policy, "scribe"))
    workspace.save()
    assert set(POLICY.splitlines()) <= set(on_disk(folder).splitlines())
    assert tuple(opened(folder).policy.agents) == ("archivist", "scribe")


def test_an_edit_is_in_force_at_once_and_its_refusal_changes_nothing(folder: Path) -> None:
    workspace = opened(folder)
    assert workspace.decide("archivist", "file", {"op": "read", "path": "a.md"}).verdict == "allow"
    source = workspace.policy.sources[0]
    closed = replace(source, default_permission=Permission.NONE)
    workspace.apply(Edit("close", (SourceChange(source, closed),)))
    assert workspace.decide("archivist", "file", {"op": "read", "path": "a.md"}).verdict == "deny"
    with pytest.raises(EditRefused):
        workspace.apply(Edit("stale", (SourceChange(source, closed),)))
    assert workspace.policy.sources == (closed,)


def test_a_file_that_was_changed_outside_is_not_overwritten_unasked(folder: Path) -> None:
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "mine"))
    theirs = on_disk(folder) + "# a line from elsewhere\n"
    (folder / "policy.toml").write_text(theirs, encoding="utf-8")
    assert workspace.is_changed_outside()
    with pytest.raises(WorkspaceError, match="another program changed it"):
        workspace.save()
    assert on_disk(folder) == theirs
    assert workspace.is_dirty


def test_keeping_mine_keeps_the_comments_of_the_other_version(folder: Path) -> None:
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "mine"))
    theirs = POLICY.replace("# Kept by hand.", "# Kept by two hands.").replace('"list" ]', '"list", "load" ]')
    (folder / "policy.toml").write_text(theirs, encoding="utf-8")
    workspace.save(overwrite=True)
    assert "# Kept by two hands." in on_disk(folder)
    assert not workspace.is_dirty
    assert not workspace.is_changed_outside()
    assert workspace.text() == on_disk(folder)
    assert opened(folder).policy == workspace.policy
    line = workspace.text().splitlines().index("[[agents.archivist.tool_rules]]") + 1
    denied = workspace.decide("archivist", "file", {"op": "load", "path": "a.md"})
    assert denied.rule is not None
    assert denied.rule.line == line


@pytest.mark.parametrize("theirs", ["broken = [", "\N{LATIN SMALL LETTER E WITH ACUTE}".encode("latin-1"), None])
def test_keeping_mine_writes_my_text_where_theirs_is_of_no_use(folder: Path, theirs: str | bytes | None) -> None:
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "mine"))
    mine = workspace.text()
    if theirs is None:
        (folder / "policy.toml").unlink()
    else:
        (folder / "policy.toml").write_bytes(theirs.encode() if isinstance(theirs, str) else theirs)
    with pytest.raises(WorkspaceError):
        workspace.save()
    workspace.save(overwrite=True)
    assert on_disk(folder) == mine


def test_keeping_mine_replaces_no_folder(folder: Path) -> None:
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "mine"))
    (folder / "policy.toml").unlink()
    (folder / "policy.toml").mkdir()
    with pytest.raises(WorkspaceError, match="folder"):
        workspace.save(overwrite=True)
    assert workspace.is_dirty


def test_a_reload_with_errors_keeps_the_last_good_policy_in_force(folder: Path) -> None:
    workspace = opened(folder)
    before = workspace.policy
    (folder / "policy.toml").write_text(POLICY + "\n[agents.x]\ntols = []\n", encoding="utf-8")
    problems = workspace.reload()
    assert [problem.code for problem in problems if problem.is_error] == ["unknown-key"]
    assert workspace.policy is before
    assert workspace.decide("archivist", "file", {"op": "read", "path": "a.md"}).verdict == "allow"
    (folder / "policy.toml").write_text(POLICY + "\n[agents.x]\n", encoding="utf-8")
    assert not any(problem.is_error for problem in workspace.reload())
    assert "x" in workspace.policy.agents


def test_a_base_outside_the_workspace_needs_trust_in_exactly_that_folder(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder.parent / "third").mkdir()
    text = POLICY.replace('base_path = "docs"', 'base_path = "../other"')
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyInvalid, match="not trusted"):
        opened(folder)
    opened(folder, trust=True).close()
    opened(folder).close()
    (folder / "policy.toml").write_text(text.replace("other", "third"), encoding="utf-8")
    with pytest.raises(PolicyInvalid, match="not trusted"):
        opened(folder)


def test_what_a_policy_with_errors_reaches_is_told_with_them_and_not_trusted_before_it_is_good(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    text = POLICY.replace('base_path = "docs"', 'base_path = "../other"')
    (folder / "policy.toml").write_text(f"{text}wach = true\n", encoding="utf-8")

    with pytest.raises(PolicyInvalid) as untrusted:
        opened(folder)
    with pytest.raises(PolicyInvalid) as trusted:
        opened(folder, trust=True)

    assert {problem.code for problem in untrusted.value.problems} == {"unknown-key", "not-trusted"}
    assert {problem.code for problem in trusted.value.problems} == {"unknown-key"}
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyInvalid, match="not trusted"):
        opened(folder)


def test_a_link_that_leads_a_base_outside_needs_trust_too(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder / "linked").symlink_to("../other")
    text = POLICY.replace('base_path = "docs"', 'base_path = "linked"')
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyInvalid, match="not trusted"):
        opened(folder)


def test_an_export_loads_where_it_lands_and_the_workspace_stays(folder: Path, tmp_path: Path) -> None:
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "exported"))
    written = workspace.export(tmp_path / "out")
    assert written == (tmp_path / "out/policy.toml",)
    assert (tmp_path / "out/docs").is_dir()
    assert opened(tmp_path / "out").policy == workspace.policy
    assert on_disk(folder) == POLICY


def test_a_pattern_export_is_one_file_per_agent_that_loads_again(folder: Path, tmp_path: Path) -> None:
    written = opened(folder).export(tmp_path / "out", dialect="pattern")
    assert [path.name for path in written] == ["archivist.toml"]
    assert "NOT enforce operations" in written[0].read_text(encoding="utf-8")


def test_a_policy_saved_over_a_link_keeps_the_link(folder: Path) -> None:
    (folder / "policy.toml").rename(folder / "real.toml")
    (folder / "policy.toml").symlink_to("real.toml")
    workspace = opened(folder)
    workspace.apply(describe_agent(workspace.policy, "archivist", "linked"))
    workspace.save()
    assert (folder / "policy.toml").is_symlink()
    assert "linked" in (folder / "real.toml").read_text(encoding="utf-8")


def test_a_template_that_cannot_be_written_whole_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    original = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(path)
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(WorkspaceError, match="No space left on device"):
        create_workspace(tmp_path / "new/demo", "demo")
    assert len(written) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_text_of_every_state_is_what_would_be_read_again(folder: Path) -> None:
    workspace = opened(folder)
    for number in range(3):
        workspace.apply(add_agent(workspace.policy, f"agent-{number}"))
        (folder.parent / "copy.toml").write_text(workspace.text(), encoding="utf-8")
        assert load_policy(folder.parent / "copy.toml") == workspace.policy
        assert workspace.current_problems() == ()


def test_an_edit_cannot_lead_a_source_to_a_folder_outside_that_is_not_trusted(folder: Path) -> None:
    workspace = opened(folder)
    [docs] = workspace.policy.sources
    edit = Edit("move", (SourceChange(docs, replace(docs, base_path=str(folder.parent))),))
    with pytest.raises(EditRefused, match="not trusted"):
        workspace.apply(edit)

    assert workspace.policy.sources == (docs,)
    running = workspace.sources.get("docs")
    assert running is not None
    assert running.base == str(folder / "docs")
    workspace.close()


def test_an_edit_made_while_the_file_is_written_is_not_taken_for_saved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = opened(folder)
    workspace.apply(add_agent(workspace.policy, "first"))

    def write(path: Path, text: str, *, expected: str | None) -> None:
        workspace.apply(add_agent(workspace.policy, "second"))
        write_policy_text(path, text, expected=expected)

    monkeypatch.setattr("gatewright.workspace.policytext.write_policy_text", write)
    workspace.save()
    monkeypatch.undo()

    assert workspace.is_dirty
    assert "[agents.first]" in on_disk(folder)
    assert "[agents.second]" not in on_disk(folder)
    workspace.save()
    assert list(load_policy(folder / "policy.toml").agents) == ["archivist", "first", "second"]
    workspace.close()


RULED = """\
gatewright = 1

[agents.archivist]
tools = ["file"]

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = "RequiredBeforeExit"

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

[tools.file]
safety_tier = "privileged"
description = "Keeps the notes."

# who may not
[[policy.rules]]
name = "not the archivist"
effect = "deny"
agents = ["archivist"]   # only this one
operations = ["delete"]
"""


def ruled(folder: Path) -> Workspace:
    (folder / "policy.toml").write_text(RULED, encoding="utf-8")
    return opened(folder)


def test_renaming_an_agent_writes_its_new_name_into_the_policy_rules(folder: Path) -> None:
    workspace = ruled(folder)
    workspace.apply(rename_agent(workspace.policy, "archivist", "scribe"))
    workspace.save()

    assert on_disk(folder) == RULED.replace("agents.archivist", "agents.scribe").replace('["archivist"]', '["scribe"]')
    assert opened(folder).policy == workspace.policy


def test_removing_an_agent_removes_the_rule_for_it_alone_and_undo_brings_both_back(folder: Path) -> None:
    workspace = ruled(folder)
    edit = remove_agent(workspace.policy, "archivist")
    workspace.apply(edit)
    assert workspace.policy.rules == ()
    assert workspace.current_problems() == ()

    workspace.apply(inverse(edit))
    assert workspace.text() == RULED


def test_removing_an_agent_without_its_policy_rules_is_refused(folder: Path) -> None:
    workspace = ruled(folder)
    edit = Edit("remove", (AgentChange(workspace.policy.agents["archivist"], None),))

    with pytest.raises(EditRefused, match="`not the archivist` is for agent `archivist`"):
        workspace.apply(edit)


def test_catalog_is_as_the_settings_of_the_policy_change_it(folder: Path) -> None:
    workspace = ruled(folder)
    facts = next(facts for facts in workspace.catalog if facts.name == "file")

    assert facts == workspace.rights("archivist")["file"].facts
    assert {row.tier for row in facts.operations} == {SafetyTier.PRIVILEGED}
    assert facts.description == "Keeps the notes."


def closed_source(policy: Policy) -> Change:
    return SourceChange(policy.sources[0], None)


def closed_defaults(policy: Policy) -> Change:
    approvals = {"privileged": Verdict.DENY}
    return FieldChange("defaults", policy.defaults, replace(policy.defaults, approvals=approvals))


def closed_rules(policy: Policy) -> Change:
    return FieldChange("rules", policy.rules, (PolicyRule("no files", Verdict.DENY, tools=("file",)),))


@pytest.mark.parametrize("close", [closed_source, closed_defaults, closed_rules])
def test_edit_that_hides_what_an_agent_must_call_is_refused(folder: Path, close: Callable[[Policy], Change]) -> None:
    workspace = ruled(folder)

    with pytest.raises(EditRefused, match="`file` cannot be hidden from `archivist`, which has to call it"):
        workspace.apply(Edit("close", (close(workspace.policy),)))
    assert not workspace.is_dirty
