"""The tree of a JSON value: rows on demand, paths, search."""

import json
import time

from PySide6.QtCore import QModelIndex
from PySide6.QtTest import QAbstractItemModelTester

from gatewright_gui.pages.trial import json_tree_model as jsontree
from gatewright_gui.pages.trial.json_tree_model import MAX_ROWS, JsonTreeModel, is_small
from tests.support.patience import in_time

VALUE: dict[str, object] = {
    "items": [{"name": "one", "n": 1.5}, {"na me": None, "ok": True}],
    "text": "first\nsecond",
    "none": {},
}


def tree(value: object = VALUE) -> JsonTreeModel:
    model = JsonTreeModel()
    model.set_value(value)
    return model


def below(model: JsonTreeModel, *rows: int) -> QModelIndex:
    return model.index_of(rows)


def places(model: JsonTreeModel, text: str) -> list[str]:
    return [model.path_at(model.index_of(rows)) for rows in model.find(text) if rows is not None]


def test_tree_is_a_sound_model() -> None:
    model = JsonTreeModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_value(VALUE)
    model.set_value([1, [2, [3]]])
    model.clear()
    assert tester.model() is model
    assert model.rowCount() == 0


def test_keys_values_and_counts_are_shown() -> None:
    model = tree()
    assert model.index(0, jsontree.VALUE).data() == "3 keys"
    items = below(model, 0)
    assert (items.data(), items.siblingAtColumn(jsontree.VALUE).data()) == ("items", "2 items")
    text = below(model, 1).siblingAtColumn(jsontree.VALUE)
    assert text.data() == '"first\u21b5second"'
    assert below(model, 2).siblingAtColumn(jsontree.VALUE).data() == "{}"
    assert below(model, 0, 1, 0).siblingAtColumn(jsontree.VALUE).data() == "null"


def test_path_and_whole_value_can_be_told() -> None:
    model = tree()
    assert model.path_at(below(model, 0, 0, 0)) == "$.items[0].name"
    assert model.path_at(below(model, 0, 1, 0)) == '$.items[1]["na me"]'
    assert model.path_at(below(model)) == "$"
    assert model.text_at(below(model, 1)) == "first\nsecond"
    assert json.loads(model.text_at(below(model, 0))) == VALUE["items"]


def test_search_finds_keys_and_values_in_order() -> None:
    model = tree()
    assert places(model, "ONE") == ["$.items[0].name", "$.none"]
    assert places(model, "true") == ["$.items[1].ok"]
    assert places(model, "absent") == []
    assert places(tree("just text"), "text") == ["$"]


def test_unseen_characters_are_written_out() -> None:
    model = tree({"a\u202eb": "c\u200bd"})
    assert below(model, 0).data() == "a\\u202eb"
    assert below(model, 0).siblingAtColumn(jsontree.VALUE).data() == '"c\\u200bd"'


def test_megabyte_is_ready_at_once_and_rows_are_made_on_demand() -> None:
    value = [{"id": number, "name": f"entry {number}", "tags": ["a", "b"]} for number in range(20_000)]
    assert len(json.dumps(value)) > 1_000_000
    model = JsonTreeModel()
    began = time.process_time()
    model.set_value(value)
    assert model.rowCount(model.index(0, 0)) <= MAX_ROWS
    assert below(model, 19_999, 1).siblingAtColumn(jsontree.VALUE).data() == '"entry 19999"'
    assert in_time(time.process_time() - began, 0.1)
    assert places(model, "entry 19999") == ["$[19999].name"]


def test_long_list_and_object_come_in_spans_that_change_no_path() -> None:
    model = JsonTreeModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_value({"items": list(range(450)), "table": {f"key{n}": n for n in range(201)}})
    items, table = model.index(0, 0, model.index(0, 0)), model.index(1, 0, model.index(0, 0))
    spans = [model.index(row, 0, items) for row in range(model.rowCount(items))]
    assert [span.data() for span in spans] == ["[0 ... 199]", "[200 ... 399]", "[400 ... 449]"]
    assert spans[2].siblingAtColumn(jsontree.VALUE).data() == "50 items"
    assert model.path_at(spans[1]) == "$.items"
    assert json.loads(model.text_at(spans[2])) == list(range(400, 450))
    assert model.path_at(below(model, 0, 449)) == "$.items[449]"
    assert [model.index(row, 0, table).data() for row in range(2)] == ["key0 ... key199", "key200 ... key200"]
    assert model.path_at(below(model, 1, 200)) == "$.table.key200"
    assert json.loads(model.text_at(model.index(1, 0, table))) == {"key200": 200}
    huge = tree(list(range(50_000)))
    assert huge.rowCount(huge.index(0, 0)) == 2
    assert huge.path_at(below(huge, 49_999)) == "$[49999]"
    assert tester.model() is model


def test_small_values_are_told_from_those_that_take_time() -> None:
    assert is_small({"a": [1, 2, {"b": None}]})
    assert not is_small(list(range(5_000)))
    assert not is_small([[list(range(50)) for _ in range(50)] for _ in range(50)])


def test_deep_value_is_searched_without_recursion() -> None:
    value: object = "bottom"
    for _ in range(5_000):
        value = [value]
    found = [rows for rows in tree(value).find("bottom") if rows is not None]
    assert [len(rows) for rows in found] == [5_000]
