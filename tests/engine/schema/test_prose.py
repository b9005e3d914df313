"""Descriptions after hidden operations left: they read well and name none of them."""

import pytest

from gatewright.schema import clean_text


@pytest.mark.parametrize(
    ("text", "hidden", "kept", "wanted"),
    [
        ("Manage keys: list/get/create", "get create", "list", "Manage keys: list"),
        ("Manage keys: list, get, or create.", "get", "list create", "Manage keys: list or create."),
        ("Required for get, update, delete.", "get delete", "update", "Required for update."),
        ("The name. Required for create.", "create", "list", "The name."),
        ("Name for create/rename operations.", "rename", "create", "Name for create operation."),
        ("Base64 content for upload.", "upload", "list", "Base64 content."),
        ("Needed by every action except list.", "list", "get", "Needed by every action."),
        ("Overwrite it (create only).", "create", "list", "Overwrite it."),
        ("Recipients (required for send, optional for draft)", "send", "draft", "Recipients (optional for draft)"),
        ("Mailbox — required when action is 'move'", "move", "flag", "Mailbox"),
        ("Create, update, and delete rules.", "update delete", "create", "Create rules."),
        ("List boards or get board details.", "list", "get", "Get board details."),
        ("Manage tags: list all tags, create a tag, or delete a tag.", "delete", "list create",
         "Manage tags: list all tags or create a tag."),
        ("Use action 'a1' to look, 'b1' to store, or 'c1' to send.", "b1", "a1 c1",
         "Use action 'a1' to look or 'c1' to send."),
        ("put: stores it; drop: forgets it; peek: looks.", "drop", "put peek", "put: stores it; peek: looks."),
        ("Mode: replace clears it, add merges cells, keep does nothing", "add", "replace keep",
         "Mode: replace clears it, keep does nothing"),
        ("get and check are read-only.", "check", "get", "get is read-only."),
        ("The tool reads. Delete is final. It cannot be undone. Be careful.", "delete", "read",
         "The tool reads. Be careful."),
        ("Nothing to see here.", "delete", "read", "Nothing to see here."),
        ("delete", "delete", "read", ""),
        ("See list_items and listing.", "list", "get", "See list_items and listing."),
        ("Comment text. Required for comment.", "comment", "reply comment", "Comment text."),
    ],
)  # fmt: skip
def test_hidden_operations_leave_a_sentence(text: str, hidden: str, kept: str, wanted: str) -> None:
    assert clean_text(text, hidden.split(), kept.split()) == wanted


def test_bullets_of_hidden_operations_go_with_all_that_hangs_on_them() -> None:
    text = "Operations:\n- `get`: one.\n- `drop`: forget it.\n  - for good\n  - at once\n- `put`: store it."
    assert clean_text(text, ["drop"], ["get", "put"]) == "Operations:\n- `get`: one.\n- `put`: store it."


def test_an_introduction_without_its_list_goes() -> None:
    text = "Does things. Be careful with:\n- `drop`: forget it.\n\nEnd."
    assert clean_text(text, ["drop"], ["get"]) == "Does things.\n\nEnd."


def test_a_section_about_a_hidden_operation_goes_whole() -> None:
    start = "# Tool\nGeneral.\n\n## 1. fetch\nGets it.\n- Required: id\n\n"
    text = start + "## 2. drop\nForgets it.\n- Required: id\n\n# Notes\nEnd."
    assert clean_text(text, ["drop"], ["fetch"]) == start + "# Notes\nEnd."


def test_numbered_steps_are_numbered_anew() -> None:
    text = "Steps:\n1. open it\n2. use append\n3. close it"
    assert clean_text(text, ["append"], ["open"]) == "Steps:\n1. open it\n2. close it"


def test_a_code_block_that_names_a_hidden_operation_goes() -> None:
    text = "Use it.\n```\ncall(op='drop')\n```\nEnd."
    assert clean_text(text, ["drop"], ["get"]) == "Use it.\nEnd."


def test_a_legal_value_keeps_its_exact_spelling_only() -> None:
    assert clean_text("Send KILL. Or kill it.", ["kill"], ["KILL", "list"]) == "Send KILL."


def test_a_long_text_loses_every_mention() -> None:
    text = "Required for list, get, drop. " * 2_000
    assert clean_text(text, ["drop"], ["list", "get"]) == ("Required for list, get. " * 2_000).strip()


def test_the_first_of_several_names_goes_without_the_word_that_leads_them() -> None:
    text = "Job ID for get-run, stop-run operations, or to retry."
    assert clean_text(text, ["get-run"], ["stop-run"], operations=["stop-run"]) == (
        "Job ID for stop-run operations, or to retry."
    )


def test_what_introduces_a_list_stays_when_nothing_of_the_list_does() -> None:
    text = "Manage the storages of a service: list/create, plus backups: run_all/run_one."
    assert clean_text(text, ["list", "create", "run_one"], ["run_all"], operations=["run_all"]) == (
        "Manage the storages of a service."
    )
