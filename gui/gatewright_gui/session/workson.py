"""What the files are that the tools of a policy work on, in words: sources, or folders of roots. It draws nothing."""

from collections.abc import Mapping

from gatewright.workspace.api import Roots, ToolFacts, roots_by_tool
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document


def works_on(document: Document) -> Mapping[str, str]:
    """By tool; nothing of a tool of which it is not known."""
    roots = document.policy.roots
    found = ((facts.name, _words(facts, roots)) for facts in document.catalog)
    return {name: words for name, words in found if words}


def _words(facts: ToolFacts, roots: Roots) -> str:
    if facts.origin != "built-in":
        return ""
    if facts.needs_source:
        return tr("works on the files of the agent's sources")
    named = [
        _folder_words(root, folder) for root in roots_by_tool().get(facts.name, ()) if (folder := roots.folder(root))
    ]
    if not named:
        return ""
    folders = f" {tr('and')} ".join(named)
    return tr("works on {folders}: roots, where FsRead and FsWrite decide", folders=folders)


def _folder_words(root: str, folder: str) -> str:
    return f"`{folder}`" if folder == root else f"`{folder}` ({root})"
