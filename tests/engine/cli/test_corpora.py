"""Filtering and permissions over real data through the command line, on samples that keep the run short."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gatewright.cli.main import main
from gatewright.schema import SchemaChecker
from tests.engine.glob.oracle import GitOracle

Runner = Callable[..., tuple[int, Any]]
EVERY_NTH_TOOL = 5
PATTERNS = 40


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    def ran(*words: str | Path) -> tuple[int, Any]:
        status = main([str(word) for word in words])
        out = capsys.readouterr().out
        return status, json.loads(out)

    return ran


def enum_tools(corpora: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    tools = {row["id"]: row["tool"] for row in json.loads((corpora / "mcp_tools.json").read_text("utf-8"))}
    marked: list[dict[str, Any]] = json.loads((corpora / "multi_op_annotations.json").read_text("utf-8"))
    return [(row, tools[row["id"]]) for row in marked if row["shape"].startswith("property-enum")]


def test_filter_of_real_tools_to_one_operation_refuses_all_others(corpora: Path, tmp_path: Path, run: Runner) -> None:
    checked = 0
    for row, tool in enum_tools(corpora)[::EVERY_NTH_TOOL]:
        path = tmp_path / "tool.json"
        path.write_text(json.dumps(tool), encoding="utf-8")
        field = row["operation_field"]
        for name in row["operations"]:
            status, schema = run("filter", path, "--allow", name, "--field", field, "--json")
            assert status == 0, row["id"]
            Draft202012Validator.check_schema(schema)
            only = SchemaChecker({"type": "object", "properties": {field: schema["properties"][field]}})
            assert [other for other in row["operations"] if only.is_valid({field: other})] == [name], row["id"]
            assert field in schema.get("required", []) or row["default"] == name
            checked += 1
    assert checked > 30


def test_operations_of_real_tools_are_the_annotated_ones(corpora: Path, tmp_path: Path, run: Runner) -> None:
    for row, tool in enum_tools(corpora)[::EVERY_NTH_TOOL]:
        path = tmp_path / "tool.json"
        path.write_text(json.dumps(tool), encoding="utf-8")
        status, found = run("operations", path, "--json")
        assert status == 0
        assert found["field"] == row["operation_field"]
        assert sorted(operation["name"] for operation in found["operations"]) == sorted(row["operations"])


def single_patterns(corpora: Path) -> list[tuple[str, list[str]]]:
    """Patterns without `!`, each with the paths of its rows (folders with a trailing `/`)."""
    data = json.loads((corpora / "gitignore_rows.json").read_text("utf-8"))
    paths: dict[str, list[str]] = {}
    for _, held, path, is_folder, _, _ in data["rows"]:
        paths.setdefault(held, []).append(path + "/" * is_folder)
    found: dict[str, list[str]] = {}
    for held, tried in paths.items():
        for line in data["pattern_sets"][held]["patterns"]:
            if line.strip() and not line.startswith(("#", "!")):
                found.setdefault(line, []).extend(tried)
    rows = [(line, list(dict.fromkeys(tried))) for line, tried in sorted(found.items())]
    return rows[:: max(1, len(rows) // PATTERNS)]


def test_permission_agrees_with_git_pattern_by_pattern(corpora: Path, tmp_path: Path, run: Runner) -> None:
    compared = 0
    for number, (pattern, paths) in enumerate(single_patterns(corpora)):
        folder, judge = tmp_path / f"policy-{number}", tmp_path / f"git-{number}"
        (folder / "base").mkdir(parents=True)
        judge.mkdir()
        rule = f'permission_rules = [{{ pattern = {json.dumps(pattern)}, permission = "none" }}]'
        source = f'[[sources]]\nid = "s"\ntype = "file"\nbase_path = "base"\ndefault_permission = "admin"\n{rule}\n'
        (folder / "policy.toml").write_text(f"gatewright = 1\n{source}", encoding="utf-8")
        folders = "\0".join(path for path in paths if path.endswith("/"))
        tried = [path for path in paths if f"{path}/" not in folders][:200]  # one path cannot be both on disk
        status, rows = run("permission", folder, "--source", "s", "--json", "--", *tried)
        assert status == 0
        closed = {row["path"] for row in rows if row["permission"] == "none"}
        assert closed == GitOracle(judge).ignored(pattern, tried), pattern
        compared += len(tried)
    assert compared > 500
