"""Descriptions after hidden operations left: they read well and name none of them."""

import pytest

from gatewright.schema import clean_text


@pytest.mark.parametrize(
    ("text", "hidden", "kept", "wanted"),
    [
        ("Manage keys: list/get/create", "get create", "list", "Manage keys: list"),
        ("Manage keys: list, get, or create.", "get", "list create", "Manage keys: list or create."),
        ("Required for get, update, delete.", "get delete", "update", "Required for update."),
        ("Name for create/rename operations.", "rename", "create", "Name for create operations."),
        ("Create, update, and delete rules.", "delete", "create update", "Create and update rules."),
        ("Get, `put` or drop.", "get", "put drop", "`put` or drop."),
        ("You can get, put or log in.", "log", "get put", ""),
        ("get and check are read-only.", "check", "get", ""),
        ("Takes either get or put.", "put", "get", ""),
        ("The name. Required for create.", "create", "list", "The name."),
        ("Call delete_all before this, or peek.", "delete_all", "peek", ""),
        ("Looks. Call delete_all before this, or peek. Be quick.", "delete_all", "peek", "Looks. Be quick."),
        ("Overwrite it (create only).", "create", "list", "Overwrite it."),
        ("Manage tags: list all tags, create a tag, or delete a tag.", "delete", "list create", "Manage tags."),
        ("Manage tags of key, or host: list, plus: delete all.", "delete", "list", "Manage tags of key, or host."),
        ("Merge cells, or delete them.", "delete", "merge", ""),
        ("Actions are: list all tags, or delete a tag.", "delete", "list", ""),
        ("put: stores it; drop: forgets it; peek: looks.", "drop", "put peek", ""),
        ("The tool reads. Delete is final. It cannot be undone. Be careful.", "delete", "read",
         "The tool reads. Be careful."),
        ("Nothing to see here.", "delete", "read", "Nothing to see here."),
        ("delete", "delete", "read", ""),
        ("See list_items and listing.", "list", "get", "See list_items and listing."),
        ("It lists. To prioritize backlog, ask.", "prioritize_backlog", "list", "It lists."),
        ("It lists. Delete\nall of it.", "deleteAll", "list", "It lists."),
        ("It takes get issue labels.", "get_issue", "get_issue_labels", "It takes get issue labels."),
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


def test_a_code_block_that_names_a_hidden_operation_goes() -> None:
    text = "Use it.\n```\ncall(op='drop')\n```\nEnd."
    assert clean_text(text, ["drop"], ["get"]) == "Use it.\nEnd."


def test_a_legal_value_keeps_its_exact_spelling_only() -> None:
    assert clean_text("Send KILL. Or kill it.", ["kill"], ["KILL", "list"]) == "Send KILL."


def test_a_long_text_loses_every_mention() -> None:
    text = "Required for list, get, drop. " * 2_000
    assert clean_text(text, ["drop"], ["list", "get"]) == "Required for list, get. " * 2_000


def test_the_first_of_several_names_goes_without_the_word_that_leads_them() -> None:
    text = "Job ID for get-run, stop-run operations, or to retry."
    assert clean_text(text, ["get-run"], ["stop-run"], operations=["stop-run"]) == (
        "Job ID for stop-run operations, or to retry."
    )


def test_a_list_of_operations_shrinks_though_a_parameter_bears_a_hidden_name() -> None:
    assert clean_text("Do put, or drop.", ["drop"], ["put", "drop"], operations=["put"]) == "Do put."


def test_a_row_about_a_hidden_operation_goes_with_what_it_says_further_on() -> None:
    text = "Args:\n    drop: forgets it. Really gone.\n    put: stores it."
    assert clean_text(text, ["drop"], ["put"]) == "Args:\n    put: stores it."
