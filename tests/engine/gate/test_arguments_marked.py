"""Marked arguments at the gate: canonical for the tool and for conditions, judged wherever they stand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import ToolFailure
from gatewright.gate import Decision, Status
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action, SafetyTier, Verdict
from gatewright.tools import FileParameter, Normalization, PathParameter, ResultType, SideEffect, Tool, operation
from gatewright.tools.context import ToolExecutionContext
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import POLICY, World

TEXT = """gatewright = 1

[agents.archivist]
capabilities = [
  {{ NetRead = {{ allowlist = ["*"] }} }},
  {{ NetWrite = {{ allowlist = ["*"] }} }},
  {{ FsRead = {{ prefixes = [".", "{outside}"] }} }},
  {{ FsWrite = {{ prefixes = ["."] }} }},
  {{ DbRead = {{ tables = ["*"] }} }},
  {{ EnvRead = {{ vars = ["*"] }} }},
]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [
  {{ pattern = "secret/**", permission = "none" }},
  {{ pattern = "frozen.md", permission = "read_only" }},
  {{ pattern = "shared.md", permission = "partner" }},
]
"""


@pytest.fixture
def open_world(make_world: MakeWorld, tmp_path: Path) -> World:
    """Everything is granted; what stops a call is what it names."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x")
    world = make_world(TEXT.format(outside=outside), *marked_tools())
    (world.folder / "notes").mkdir()
    (world.folder / "notes/a.md").write_text("fine")
    (world.folder / "way").symlink_to("docs")
    (world.docs / "frozen.md").write_text("cold")
    (world.docs / "secret").mkdir()
    (world.docs / "secret/key").write_text("hidden")
    return world


def trace(decision: Decision, stage: str) -> str:
    return next(row.reason for row in decision.trace if row.stage == stage)


def test_url_is_canonical_for_the_tool_and_the_trace_shows_both(open_world: World) -> None:
    decision = open_world.decide("fetch", {"url": "HTTPS://Example.ORG:443/a/../b"})
    assert decision.verdict is Verdict.ALLOW
    assert decision.arguments == {"url": "https://example.org/b"}
    said = trace(decision, "arguments")
    assert "HTTPS://Example.ORG:443/a/../b" in said
    assert "https://example.org/b" in said
    assert "names are resolved and checked at execution" in said


async def test_tool_is_given_what_was_judged(open_world: World) -> None:
    outcome = await open_world.call("fetch", {"url": "https://example.org/%2e%2e/x"})
    assert outcome.status is Status.ALLOWED
    assert json.loads(outcome.output or "") == ["https://example.org/x"]
    path = await open_world.call("peek", {"path": "notes/../notes/a.md"})
    assert json.loads(path.output or "") == [str(open_world.folder / "notes/a.md")]


def test_every_url_of_a_list_is_judged(open_world: World) -> None:
    good = open_world.decide("crawl", {"urls": ["https://a.example/", "https://B.example"]})
    assert good.arguments == {"urls": ["https://a.example/", "https://b.example/"]}
    bad = open_world.decide("crawl", {"urls": ["https://a.example/", "http://0x7f.1/"]})
    assert (bad.verdict, bad.stage, bad.code) == (Verdict.DENY, "arguments", "url-private")


def test_url_inside_nested_objects_is_judged(open_world: World) -> None:
    good = open_world.decide("deliver", {"text": "x", "targets": [{"url": "https://A.example"}], "mirror": None})
    assert good.verdict is Verdict.ALLOW
    assert good.arguments["targets"] == [{"url": "https://a.example/"}]
    for arguments in (
        {"text": "x", "targets": [{"url": "https://a.example"}, {"url": "http://[::1]/"}]},
        {"text": "x", "targets": [{"url": "https://a.example"}], "mirror": "http://10.0.0.1"},
    ):
        bad = open_world.decide("deliver", arguments)
        assert (bad.verdict, bad.stage, bad.code) == (Verdict.DENY, "arguments", "url-private")


def test_default_is_checked_and_written_out(open_world: World) -> None:
    assert open_world.decide("ping", {}).arguments == {"host": "example.org"}


def test_refusal_echoes_nothing_to_the_model(open_world: World) -> None:
    for tool, arguments in (
        ("fetch", {"url": "http://sesame@example.org/"}),
        ("fetch", {"url": "http://sesame.internal/"}),
        ("peek", {"path": "/sesame/../../sesame"}),
        ("peek", {"path": "~/sesame"}),
        ("rows", {"table": "sesame\n"}),
    ):
        decision = open_world.decide(tool, arguments)
        assert decision.verdict is Verdict.DENY
        assert decision.stage == "arguments"
        assert "sesame" not in (decision.model_message or "")


@pytest.mark.parametrize(
    ("tool", "name", "good", "bad", "code"),
    [
        ("crawl", "urls", ["https://a.example/"] * 1_000, ["https://a.example/"], "too-many-targets"),
        (
            "crawl",
            "urls",
            ["https://a.example/" + 245 * "a"] * 996 + ["https://a.example/" + 178 * "a"],
            ["https://a.example/"],
            "too-many-targets",
        ),
        ("rows", "table", "t" * 1_024, "t", "bad-name"),
    ],
    ids=["addresses", "characters", "name"],
)
def test_so_much_is_taken_in_one_call_and_no_more(
    open_world: World, tool: str, name: str, good: Any, bad: Any, code: str
) -> None:
    assert open_world.decide(tool, {name: good}).verdict is Verdict.ALLOW
    decision = open_world.decide(tool, {name: good + bad})
    assert (decision.verdict, decision.code) == (Verdict.DENY, code)


def test_denials_are_told_to_operator_and_model_word_for_word(open_world: World) -> None:
    deliver: dict[str, Any] = {"text": "x", "targets": [{"url": "https://a.example"}]}
    key = f"{open_world.docs}/secret/key"
    elsewhere = "that path is not available to you; choose another one"
    closed = "secret/key` of `docs` is set to hidden by rule 1 `secret/**`"
    rows: list[tuple[str, dict[str, Any], str, str, str, str]] = [
        ("rows", {"table": ""}, "bad-name", "", "`table` is empty, too long or contains control characters",
         "`table` names are plain texts"),
        ("settings_row", {"table": "t", "name": "b\x7f"}, "bad-name", "",
         "`name` is empty, too long or contains control characters", "`variable` names are plain texts"),
        ("setting", {"name": "a=b"}, "bad-name", "", "`name` contains `=`, which no variable's name does",
         "leave `=` out of names"),
        ("mixed", {"url": 3}, "argument-unjudgeable", "", "`url` is marked as url but contains a non-text value",
         "`url` must contain texts only"),
        ("file", {"op": "read", "path": "a", "source": "s" * 201}, "unknown-source", "",
         f"agent `archivist` has no source `{'s' * 200}`", "the source must be one of `docs`"),
        ("file", {"op": "append"}, "arguments-mismatch", "",
         "/path: `append` needs `path`\n/content: `append` needs `content`",
         "the arguments do not fit:\n/path: `append` needs `path`\n/content: `append` needs `content`"),
        ("crawl", {"urls": ["https://a.example"] * 1_001}, "too-many-targets", "",
         "more than 1,000 paths and addresses",
         "more than 1,000 paths and addresses in one call; make several calls"),
        ("crawl", {"urls": ["https://a.example/" + "b" * 2_000] * 131}, "too-many-targets", "",
         "paths and addresses of more than 262,144 characters",
         "paths and addresses of more than 262,144 characters in one call; make several calls"),
        ("rows", {"table": "t" * 300_000}, "bad-name", "", "`table` is empty, too long or contains control characters",
         "`table` names are plain texts"),
        ("deliver", {**deliver, "text": "file:" * 70 + "//x"}, "unreadable-path", "",
         "`text` may mean too many different paths", elsewhere),
        ("deliver", {**deliver, "mirror": "https://u:p@b.example"}, "url-user", "",
         "the URL names a user before the host", "leave user and password out of the URL"),
        ("peek", {"path": "~/x"}, "path-home", "", "the path begins with `~`",
         "give a path relative to the top folder"),
        ("peek", {"path": "docs/secret/key"}, "level-none", "permission_rules[0]", f"`{closed}", elsewhere),
        ("deliver", {**deliver, "targets": [{"url": "https://a.example", "label": key}]}, "level-none",
         "permission_rules[0]", f"`targets.0.label` is `{key}`: `{closed}", elsewhere),
        ("duplicate", {"source": "notes/a", "target": "docs/frozen.md"}, "level-denies", "permission_rules[1]",
         "`frozen.md` of `docs` is set to read only by rule 2 `frozen.md`, which denies overwrite",
         "that path may not be changed in this way; choose another one or another way"),
        ("duplicate", {"source": "docs/frozen.md", "target": "docs/shared.md"}, "level-asks", "permission_rules[2]",
         "`shared.md` of `docs` is set to changes ask by rule 3 `shared.md`, which asks before overwrite", ""),
    ]  # fmt: skip
    for tool, arguments, *told in rows:
        decision = open_world.decide(tool, arguments)
        rule = decision.rule.rule_id.removeprefix("sources.docs.") if decision.rule else ""
        model = (decision.model_message or "").removeprefix("Tool execution failed: ")
        assert [decision.code, rule, decision.reason, model] == told


def test_stages_say_word_for_word_what_the_arguments_name(open_world: World) -> None:
    folder, long, cut = open_world.folder, "x" * 205, "x" * 200
    first = f"`docs/frozen.md` is `{folder}/docs/frozen.md`, `frozen.md` of `docs`"
    outside = folder.parent / "outside/secret"
    resolved = "host names are resolved and checked at execution"
    note, deep = f"{folder}/docs/note.md", f"{folder}/docs/{long}"
    rows: list[tuple[str, dict[str, Any], str, str, str]] = [
        ("duplicate", {"source": "docs/frozen.md", "target": "docs/x.md"},
         f"{first}; `docs/x.md` is `{folder}/docs/x.md`, `x.md` of `docs`",
         "FsRead is granted, FsWrite is granted", "`frozen.md` is set to read only, `x.md` is set to read and write"),
        ("post", {"url": "https://a.example", "text": note},
         f"`https://a.example` is `https://a.example/`; {resolved}; `text` `{note}` is `{note}`, `note.md` of `docs`",
         "NetWrite is granted", "`note.md` of `docs` is set to read and write"),
        ("peek", {"path": long}, f"`{cut}` is `{folder}/{long}`, `{long}`", "FsRead is granted", "no place named"),
        ("peek", {"path": f"{outside}"}, f"`{outside}` is `{outside}`, `secret`", "FsRead is granted",
         "no place named"),
        ("fetch", {"url": f"https://a.example/{long}"},
         f"`https://a.example/{'x' * 182}` is `https://a.example/{'x' * 182}`; {resolved}", "NetRead is granted",
         "no place named"),
        ("rows", {"table": long}, f"table `{cut}`", "DbRead is granted", "no place named"),
        ("settings_row", {"table": "t", "name": "n"}, "table `t`; variable `n`",
         "DbRead is granted, EnvRead is granted", "no place named"),
        ("news", {}, "no path given", "NetRead is granted", "no place named"),
        ("file", {"op": "read", "path": long}, f"`{cut}` is `{long}` of `docs`", "no capability needed",
         f"`{long}` is set to read and write"),
        ("echo", {"text": deep}, f"`text` `{deep[:200]}` is `{deep}`, `{long}` of `docs`", "no capability needed",
         f"`{long}` of `docs` is set to read and write"),
    ]  # fmt: skip
    for tool, arguments, *said in rows:
        decision = open_world.decide(tool, arguments)
        assert [trace(decision, stage) for stage in ("arguments", "capability", "permission")] == said
        assert decision.verdict is Verdict.ALLOW


def test_operator_is_told_the_first_targets_and_how_many_more_there_are(open_world: World) -> None:
    urls = [f"https://{number}.a.example/" for number in range(22)]
    said = [trace(open_world.decide("crawl", {"urls": urls[:count]}), "arguments") for count in (20, 22)]
    assert ["https://19.a.example/" in one for one in said] == [True, True]
    assert ["https://20.a.example/" in one for one in said] == [False, False]
    assert [("; and 2 more; " in one, " more" in one) for one in said] == [(False, False), (True, True)]


def test_path_has_one_form_for_the_tool_and_one_for_conditions(open_world: World) -> None:
    open_world.reload(
        TEXT.format(outside="/nowhere")
        + """
[[policy.rules]]
name = "only notes"
effect = "deny"
tools = ["peek"]
when = { properties = { path = { not = { pattern = "^notes/" } } } }
message = "only below notes/"
"""
    )
    good = open_world.decide("peek", {"path": "./notes/a.md"})
    assert good.verdict is Verdict.ALLOW
    assert good.arguments == {"path": str(open_world.folder / "notes/a.md")}
    said = trace(good, "arguments")
    assert "`./notes/a.md`" in said
    assert str(open_world.folder / "notes/a.md") in said
    assert "`notes/a.md`" in said
    bad = open_world.decide("peek", {"path": "notes/../other"})
    assert (bad.stage, bad.model_message) == ("policy", "Tool execution failed: only below notes/")


async def test_condition_on_a_path_holds_for_a_label_too(make_world: MakeWorld) -> None:
    when = '{ properties = { path = { pattern = "^draft" } }, required = ["path"] }'
    world = make_world(f'{POLICY}\n[[policy.rules]]\nname = "no drafts"\neffect = "deny"\nwhen = {when}\n')
    found: list[str] = []
    for name in ("draft.md", "final.md"):
        (world.docs / name).write_text("one\n")
        source = world.sources.get("docs")
        assert source is not None
        given = {"op": "save", "label": source.label(name)}
        decision = world.decide("file", given)
        found.append(decision.code)
        assert decision.arguments == {**given, "source": "docs"}
    assert found == ["policy-deny", "allowed"]


def test_place_is_judged_by_what_the_tool_says_that_it_does_there(make_world: MakeWorld) -> None:
    class Shredder(Tool):
        """Says that it deletes, though its author marked what it reads."""

        name = "shredder"
        description = "Shreds."
        safety_tier = SafetyTier.READ_ONLY
        side_effects = frozenset({SideEffect.FS_WRITE})
        result_type = ResultType.ARRAY
        normalization = Normalization.JSON
        required_capabilities = frozenset[str]()
        needs_source = True

        def assess(self, operation: str, arguments: Any, context: ToolExecutionContext) -> Assessment:
            if arguments.get("note") == "no":
                raise ToolFailure("not today", code="closed")
            return Assessment(Action.DELETE, ask="sure?" if arguments.get("note") else None)

        @operation(actions=(Action.READ, Action.DELETE))
        async def shred(
            self,
            path: Annotated[str, PathParameter()] | None = None,
            file: Annotated[str, FileParameter()] | None = None,
            target: Annotated[str, FileParameter(writes=True)] | None = None,
            note: str = "",
        ) -> list[str]:
            """Shred it."""
            return []

    world = make_world(TEXT.format(outside="/nowhere"), Shredder())
    for name in ("a.md", "frozen.md", "shared.md"):
        (world.docs / name).write_text("x")

    def told(**arguments: str) -> str:
        decision = world.decide("shredder", {"op": "shred", **arguments})
        return f"{decision.stage} {decision.code}: {decision.reason}"

    frozen = "`frozen.md` of `docs` is set to read only by rule 2 `frozen.md`, which denies delete"
    by_default = "of `docs` is set to read and write by default, which asks before `shred`"
    assert told(file="docs/frozen.md") == f"permission level-denies: {frozen}"
    assert told(path="frozen.md", target="docs/a.md") == f"permission level-denies: {frozen}"
    assert told(path="a.md", file="docs/frozen.md", target="docs/a.md") == f"permission level-asks: `a.md` {by_default}"
    assert told(path="a.md", note="x") == f"permission level-asks: `a.md` {by_default}"
    assert told() == "permission no-place: the call names no place whose level could permit it"
    assert told(path="a.md", note="no") == "permission closed: not today"


@pytest.mark.parametrize(
    "path", ["docs/secret/key", "way/secret/key", "docs/secret/nothing", "notes/../docs/secret/key"]
)
def test_path_below_a_base_takes_the_level_of_the_source(open_world: World, path: str) -> None:
    decision = open_world.decide("peek", {"path": path})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "permission", "level-none")


def test_reading_and_writing_are_told_apart_by_the_parameter(open_world: World) -> None:
    assert open_world.decide("peek", {"path": "docs/frozen.md"}).verdict is Verdict.ALLOW
    frozen = open_world.decide("poke", {"path": "docs/frozen.md"})
    assert (frozen.verdict, frozen.stage, frozen.code) == (Verdict.DENY, "permission", "level-denies")
    assert frozen.rule is not None
    assert frozen.rule.line == 20
    asked = open_world.decide("poke", {"path": "docs/shared.md"})
    assert (asked.verdict, asked.stage, asked.code) == (Verdict.ASK, "permission", "level-asks")
    assert open_world.decide("poke", {"path": "docs/other.md"}).verdict is Verdict.ALLOW
    both = open_world.decide("duplicate", {"source": "docs/frozen.md", "target": "docs/other.md"})
    assert both.verdict is Verdict.ALLOW
    turned = open_world.decide("duplicate", {"source": "docs/other.md", "target": "docs/frozen.md"})
    assert turned.code == "level-denies"


def test_source_that_the_agent_does_not_have_still_has_its_say(open_world: World) -> None:
    text = TEXT.format(outside="/nowhere").replace("[agents.archivist]", "[agents.archivist]\nsources = []")
    open_world.reload(text)
    assert open_world.decide("peek", {"path": "docs/secret/key"}).code == "level-none"
    assert open_world.decide("poke", {"path": "docs/frozen.md"}).code == "level-denies"


@pytest.mark.parametrize("tool", ["peek", "poke"])
@pytest.mark.parametrize("path", ["policy.toml", "way/../policy.toml", "linked.toml", "."])
def test_protected_files_are_refused_for_every_tool(open_world: World, tool: str, path: str) -> None:
    (open_world.folder / "policy.toml").write_text("gatewright = 1")
    os.link(open_world.folder / "policy.toml", open_world.folder / "linked.toml")
    decision = open_world.decide(tool, {"path": path})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "arguments", "protected")


def test_missing_and_forbidden_paths_read_the_same_for_the_model(open_world: World) -> None:
    paths = ["docs/secret/key", "docs/secret/nothing", "policy.toml"]
    assert len({open_world.decide("peek", {"path": path}).model_message for path in paths}) == 1


def test_value_that_is_no_text_is_not_skipped(open_world: World) -> None:
    decision = open_world.decide("mixed", {"url": 2130706433})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "arguments", "argument-unjudgeable")


JSON_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def test_whatever_a_model_sends_is_answered(open_world: World) -> None:
    @settings(max_examples=150, deadline=None)
    @given(JSON_VALUES, st.sampled_from(["fetch", "crawl", "peek", "poke", "deliver", "rows", "setting", "pages"]))
    def answered(value: Any, tool: str) -> None:
        shapes: list[Any] = [{name: value} for name in ("url", "urls", "path", "table", "name", "targets")]
        shapes.append({"text": "x", "targets": [{"url": value}], "mirror": value})
        shapes.append({"op": "get", "url": value})
        for arguments in shapes:
            decision = open_world.decide(tool, arguments)
            assert decision.code != "internal-error", decision.reason

    answered()


def test_payloads_of_path_traversal_reach_nothing_outside(open_world: World, tmp_path: Path, corpora: Path) -> None:
    open_world.reload(TEXT.format(outside="/nowhere"))
    payloads = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    escaped: list[str] = []
    for row in payloads:
        payload = row["payload"].replace("{FILE}", str(tmp_path / "outside/secret"))
        decision = open_world.decide("peek", {"path": payload})
        if decision.verdict is Verdict.ALLOW:
            real = Path(str(decision.arguments["path"])).resolve()
            escaped += [] if real.is_relative_to(open_world.folder) else [payload]
    assert escaped == []
    benign = json.loads((corpora / "benign_paths.json").read_text("utf-8"))
    refused = [row["payload"] for row in benign if not _passes(open_world, row["payload"])]
    assert refused == []


def _passes(world: World, path: str) -> bool:
    return all(world.decide(tool, {"path": path}).verdict is Verdict.ALLOW for tool in ("peek", "poke"))


def test_payloads_of_request_forgery_reach_no_private_address(open_world: World, corpora: Path) -> None:
    rows = json.loads((corpora / "attack_ssrf_urls.json").read_text("utf-8"))
    passed = [row for row in rows if open_world.decide("fetch", {"url": row["payload"]}).verdict is Verdict.ALLOW]
    assert all(row.get("third_party") for row in passed)
    benign = json.loads((corpora / "benign_urls.json").read_text("utf-8"))
    refused = [r for r in benign if open_world.decide("fetch", {"url": r["payload"]}).verdict is not Verdict.ALLOW]
    assert refused == []
