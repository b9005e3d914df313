"""The agents of a policy file in another order, for the rare edit that does not leave them in theirs.

The order of agents is that of their first tables. What is written of an agent, with the comments above it, goes where
that of another one stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatewright.policyfile.scan import Kind, Section, scan
from gatewright.policyfile.splice import Splices

Written = tuple[bool, tuple[int, int]]
"""Whether it is a statement of a table above, and where it stands."""


def in_order(text: str, agent_ids: Sequence[str]) -> str:
    """The text with its agents in that order, as far as they are written in the same way; it says the same."""
    tree, splices = scan(text), Splices(text)
    agents = tree.find(("agents",))
    if agents is None or agents.members.keys() != set(agent_ids):
        return text
    if agents.kind is Kind.INLINE:
        whole = {name: (item.key_start, item.end) for name, item in agents.members.items()}
        for name, wanted in zip(agents.members, agent_ids, strict=True):
            splices.replace(*whole[name], text[slice(*whole[wanted])].replace("\r\n", "\n"))
        return splices.result()
    written: dict[str, list[Written]] = {}
    for section in tree.sections:
        for agent_id, found in _written(section, splices):
            written.setdefault(agent_id, []).append(found)
    for name, wanted in zip(agents.members, agent_ids, strict=True):
        if name == wanted:
            continue
        if {statement for statement, _ in written[name]} != {statement for statement, _ in written[wanted]}:
            return text
        first, *others = written[name]
        pieces = [text[slice(*span)].replace("\r\n", "\n").removesuffix("\n") + "\n" for _, span in written[wanted]]
        splices.replace(*first[1], ("" if first[0] else "\n").join(pieces))
        for _, span in others:
            splices.remove_block(*span)
    return splices.result()


def _written(section: Section, splices: Splices) -> Iterator[tuple[str, Written]]:
    match section.path:
        case ("agents", str(agent_id), *_):
            start = splices.comments_above(splices.line_start(section.start))
            yield agent_id, (False, (start, splices.line_end(section.end)))
        case () | ("agents",):
            for statement in section.statements:
                path = (*section.path, *statement.keys)
                if path[0] == "agents" and len(path) > 1:
                    start = splices.comments_above(splices.line_start(statement.start))
                    yield str(path[1]), (True, (start, splices.line_end(statement.item.end)))
        case _:
            return
