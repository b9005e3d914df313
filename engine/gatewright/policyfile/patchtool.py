"""The least change of ``[tools.NAME]`` and ``[[catalogs]]``."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.report import RawPath
from gatewright.policy.document import Catalog, ToolSettings
from gatewright.policyfile.editor import REMOVED, Editor
from gatewright.policyfile.pairing import CATALOGS
from gatewright.policyfile.patchvalue import set_words, written_duration
from gatewright.policyfile.plain import plain_catalog, plain_paths, plain_tiers, plain_tool_settings
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Kind


def patch_catalogs(editor: Editor, old: tuple[Catalog, ...], new: tuple[Catalog, ...]) -> None:
    """Edit the list of catalogs."""

    def change(path: RawPath, before: Catalog, after: Catalog) -> None:
        old, new = plain_catalog(before), plain_catalog(after)
        for key in ("args", "env"):
            if old.get(key) and new.get(key):
                set_words(editor, (*path, key), getattr(before, key), getattr(after, key))
                del old[key], new[key]
        _set_changed(editor, path, old, new)

    editor.edit_list(
        ("catalogs",),
        old,
        new,
        CATALOGS,
        plain=plain_catalog,
        blocks=lambda catalog: [block(("catalogs", 0), plain_catalog(catalog))],
        change=change,
    )


def patch_tools(editor: Editor, old: Mapping[str, ToolSettings], new: Mapping[str, ToolSettings]) -> None:
    """Edit, add and remove the tables of tools."""
    for name in {**old, **new}:
        path: RawPath = ("tools", name)
        if name not in new:
            editor.remove(path, comments=True)
        elif name not in old:
            _add(editor, path, plain_tool_settings(new[name]))
        elif old[name] != new[name]:
            _change(editor, path, old[name], new[name])


def _add(editor: Editor, path: RawPath, data: Mapping[str, object]) -> None:
    tools = editor.find(path[:1])
    if tools is not None and tools.kind is Kind.INLINE:
        editor.set_members(path[:1], {str(path[1]): data})
    else:
        editor.append_blocks(path[:1], [block(path, data)])


def _change(editor: Editor, path: RawPath, old: ToolSettings, new: ToolSettings) -> None:
    before, after = plain_tool_settings(old), plain_tool_settings(new)
    item = editor.find(path)
    by_line = item is not None and item.kind is not Kind.INLINE
    if old.timeout_s != new.timeout_s:
        after["timeout"] = written_duration(editor, (*path, "timeout"), new.timeout_s)
    if by_line and old.operations is not None and new.operations is not None:
        set_words(editor, (*path, "operations"), old.operations, new.operations)
        del before["operations"], after["operations"]
    if by_line and new.operation_tiers and editor.find(tiers := (*path, "operation_tiers")) is not None:
        _set_changed(editor, tiers, plain_tiers(old.operation_tiers), plain_tiers(new.operation_tiers))
        before.pop("operation_tiers", None)
        del after["operation_tiers"]
    if by_line and new.paths and editor.find(paths := (*path, "paths")) is not None:
        _set_changed(editor, paths, plain_paths(old.paths), plain_paths(new.paths))
        before.pop("paths", None)
        del after["paths"]
    if not after and editor.is_only_dotted(path):
        after["scrub"] = True
    _set_changed(editor, path, before, after)


def _set_changed(editor: Editor, path: RawPath, old: Mapping[str, object], new: Mapping[str, object]) -> None:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    editor.set_members(path, {**{key: REMOVED for key in old if key not in new}, **changed})
