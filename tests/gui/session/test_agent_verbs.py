from pathlib import Path

import pytest

from gatewright_gui.pages.access.tools.source_bar import sources_words
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import agents
from tests.gui.session.opened import Said, demo, opened_document


def two_sources(tmp_path: Path) -> Path:
    policy = demo(tmp_path)
    (policy.parent / "second").mkdir()
    more = '\n[[sources]]\nid = "second"\ntype = "file"\nbase_path = "second"\n'
    policy.write_text(policy.read_text("utf-8") + more, "utf-8")
    return policy


def attached(document: Document, agent_id: str) -> tuple[str, ...] | None:
    return document.policy.agents[agent_id].sources


async def test_source_is_attached_to_an_agent_without_one_and_undone(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        assert attached(document, "newcomer") == ()

        assert agents.attach_source(document, "newcomer", "archive", on=True)

        assert attached(document, "newcomer") == ("archive",)
        assert document.undo_stack.undoText() == "attach archive to newcomer"
        document.undo()
        assert attached(document, "newcomer") == ()
        assert not document.is_dirty


async def test_attaching_what_is_attached_is_no_edit(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        assert not agents.attach_source(document, "archivist", "archive", on=True)
        assert document.undo_stack.count() == 0


async def test_agent_with_every_source_keeps_the_others_when_one_is_taken(tmp_path: Path) -> None:
    async with opened_document(two_sources(tmp_path)) as document:
        agents.attach_every_source(document, "newcomer", on=True)
        assert attached(document, "newcomer") is None

        agents.attach_source(document, "newcomer", "archive", on=False)

        assert attached(document, "newcomer") == ("second",)


async def test_every_source_can_be_fixed_to_those_of_now(tmp_path: Path) -> None:
    async with opened_document(two_sources(tmp_path)) as document:
        agents.attach_every_source(document, "newcomer", on=True)

        agents.attach_every_source(document, "newcomer", on=False)

        assert attached(document, "newcomer") == ("archive", "second")


async def test_unknown_source_or_agent_is_refused_and_leaves_no_undo(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)

        assert not agents.attach_source(document, "newcomer", "attic", on=True)
        assert said.last == "no source `attic`"
        assert not agents.attach_source(document, "nobody", "archive", on=False)

        assert said.last == "no agent `nobody`"
        assert document.undo_stack.count() == 0


@pytest.mark.parametrize(
    ("sources", "words"),
    [((), "none"), (("second",), "second"), (("archive", "second"), "2 of 2"), (None, "every source")],
)
async def test_sources_are_named_in_a_few_words(tmp_path: Path, sources: tuple[str, ...] | None, words: str) -> None:
    async with opened_document(two_sources(tmp_path)) as document:
        if sources is None:
            agents.attach_every_source(document, "newcomer", on=True)
        for source_id in sources or ():
            agents.attach_source(document, "newcomer", source_id, on=True)

        assert sources_words(document.policy, document.policy.agents["newcomer"]) == words
