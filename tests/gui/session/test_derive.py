import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewright.workspace import Workspace
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import file_text, lines_of
from gatewright_gui.session.preview import Preview, compared, preview, provider_formats
from gatewright_gui.session.selfcheck import check_count
from gatewright_gui.session.verbs import agents, rights
from tests.gui.session.opened import demo, opened_document


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[Document]:
    async with opened_document(demo(tmp_path)) as opened:
        yield opened


@pytest.fixture
async def deriver(document: Document) -> AsyncIterator[Deriver]:
    made = Deriver(document)
    yield made
    made.close()


async def test_answer_to_an_older_policy_is_dropped(document: Document, deriver: Deriver) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_workspace: Workspace) -> str:
        begun.set()
        go_on.wait(10)
        return "late"

    answer = asyncio.ensure_future(deriver.derive(slow))
    await asyncio.to_thread(begun.wait, 10)
    agents.remove_agent(document, "newcomer")
    go_on.set()

    assert await answer is None


async def test_question_that_was_cancelled_in_the_queue_is_not_asked(document: Document, deriver: Deriver) -> None:
    begun, go_on = threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(_workspace: Workspace) -> str:
        begun.set()
        go_on.wait(10)
        return "first"

    first = asyncio.ensure_future(deriver.derive(slow))
    await asyncio.to_thread(begun.wait, 10)
    second = asyncio.ensure_future(deriver.derive(lambda _workspace: asked.append("second")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()

    assert await first == "first"
    assert await deriver.derive(lambda _workspace: "third") == "third"
    assert asked == []


async def asked(deriver: Deriver, agent_id: str, tool: str | None, provider: str = "mcp") -> Preview:
    answer = await deriver.derive(lambda workspace: preview(workspace, agent_id, tool, provider))
    assert answer is not None
    return answer


async def difference(deriver: Deriver, agent_id: str, tool: str | None, provider: str = "mcp") -> str:
    answer = await deriver.derive(lambda workspace: compared(workspace, agent_id, tool, provider, "unrestricted"))
    assert answer is not None
    return answer.change.text


async def test_preview_names_only_what_is_ticked(document: Document, deriver: Deriver) -> None:
    seen = await asked(deriver, "researcher", "file")

    assert '"read"' in seen.schema.text
    assert "delete" not in seen.schema.text
    assert "delete" not in seen.usage_rules
    gone = [line for line in (await difference(deriver, "researcher", "file")).splitlines() if line.startswith("-")]
    assert any("delete" in line for line in gone)
    catalog = document.catalog
    assert (seen.counts.shown_tools, seen.counts.all_tools) == (2, len(catalog))
    operations = sum(len(row.operations) for row in catalog)
    block = next(len(row.operations) for row in catalog if row.name == "block")
    assert (seen.counts.shown_operations, seen.counts.all_operations) == (2 + block, operations)


@pytest.mark.parametrize("provider", provider_formats())
async def test_every_format_differs_by_its_own_shape(document: Document, deriver: Deriver, provider: str) -> None:
    key = {"mcp": "inputSchema", "anthropic": "input_schema", "genai": "schema"}.get(provider, "parameters")

    seen = await asked(deriver, "researcher", None, provider)
    gone = await difference(deriver, "newcomer", None, provider)

    assert key in seen.schema.text
    assert f'"{key}"' in gone


async def test_unlimited_tool_has_no_difference(document: Document, deriver: Deriver) -> None:
    assert await difference(deriver, "operator", "web_fetch") == ""


async def test_what_rules_add_is_told_though_the_schema_is_whole(document: Document, deriver: Deriver) -> None:
    lines = (await difference(deriver, "operator", "file")).splitlines()

    assert [line for line in lines if line.startswith("@@")] == ["@@ -1,2 +1,2 @@ usage rules"]
    came = next(line for line in lines if line.startswith("+-"))
    assert "At most 40 calls per session." in came


async def test_hidden_tool_is_empty_and_says_which_layer_turned_it_off(document: Document, deriver: Deriver) -> None:
    hidden = await asked(deriver, "newcomer", "file")
    assert hidden.is_empty
    assert hidden.turned_off == ""

    rights.tick_tool(document, "newcomer", "file", on=True)

    overruled = await asked(deriver, "newcomer", "file")
    assert overruled.is_empty
    assert "no file source" in overruled.turned_off


async def test_file_text_shows_what_saving_would_change(document: Document, deriver: Deriver) -> None:
    before = await deriver.derive(file_text)
    assert before is not None
    assert before.difference == ""
    rights.tick_operations(document, "researcher", "file", ["list"], on=False)

    after = await deriver.derive(file_text)

    assert after is not None
    changed = [line for line in after.difference.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert changed == [
        '-rule_type = { AllowedOperations = ["read", "list", "load"] }',
        '+rule_type = { AllowedOperations = ["read", "load"] }',
    ]


async def test_lines_follow_the_edited_text(document: Document, deriver: Deriver) -> None:
    address = ("agents", "newcomer", "tools")
    before = await deriver.derive(lambda workspace: lines_of(workspace, [address]))
    rights.ask_first(document, "archivist", "file", "read", on=True)
    after = await deriver.derive(lambda workspace: lines_of(workspace, [address]))

    text = document.workspace.text().splitlines()
    assert before is not None
    assert after is not None
    assert text[after[address] - 1].startswith("tools = []")
    assert after[address] > before[address]


async def test_self_check_of_the_demo_agrees_everywhere(document: Document, deriver: Deriver) -> None:
    found = await deriver.derive(check_count)

    assert found is not None
    operations = sum(len(row.operations) for row in document.catalog)
    assert found.checked == len(document.policy.agents) * operations
    assert found.differences == ()


async def test_difference_names_the_tool_of_each_hunk_and_the_lines_of_a_long_text(
    document: Document, deriver: Deriver
) -> None:
    rights.tick_operations(document, "operator", "file", ["delete"], on=False)
    rights.tick_tool(document, "operator", "block", on=False)

    lines = (await difference(deriver, "operator", None)).splitlines()

    heads = [line for line in lines if line.startswith("@@")]
    assert {head.rpartition("@@ ")[2] for head in heads} == {"file", "block, not shown at all", "usage rules"}
    ends = [next(i for i, line in enumerate(lines) if line.endswith(f"@@ {name}")) for name in ("file", "usage rules")]
    in_file = lines[slice(*ends)]
    gone = [line for line in in_file if line.startswith("-") and "delete (" in line]
    assert len(gone) == 1
    assert "append (" not in gone[0]
    assert gone[0].endswith("\\n")
