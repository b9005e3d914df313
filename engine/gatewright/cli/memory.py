"""``context``, ``block``, ``inbox``, ``memory``: what agents remember and receive, for the operator."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatewright.base.amount import iso_utc
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.schema import Append, Edit, Overwrite, Replace, SetField, TextSchema, Undo
from gatewright.blocks.schemajson import schema_from_json
from gatewright.cli.output import (
    AgentOption,
    JsonOption,
    PolicyArgument,
    StateOption,
    UsageProblem,
    decode,
    print_json,
    print_line,
    print_messages,
    print_text,
    read_content,
    require_agent,
    user_name,
)
from gatewright.memory.blocktable import BlockType
from gatewright.policy.verdict import Action, Permission
from gatewright.workspace import Workspace

if TYPE_CHECKING:
    from gatewright.memory.blocks import BlockInfo, BlockService


LabelArgument = Annotated[str, typer.Argument(metavar="LABEL", help="the label of the block")]
OwnerOption = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="the agent whose block it is, else one that all share")
]
TypeOption = Annotated[BlockType | None, typer.Option("--type", help="what it is for")]
LevelOption = Annotated[Permission | None, typer.Option("--permission", help="the level that binds agents")]
LimitOption = Annotated[int | None, typer.Option("--limit", metavar="CHARS", help="how much it may hold; 0: no limit")]
DescriptionOption = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="what it is about")]
PinOption = Annotated[bool | None, typer.Option("--pin/--unpin", help="whether it stays in context")]


def context(policy: PolicyArgument, agent: AgentOption, json: JsonOption = False, state: StateOption = None) -> None:
    """Print what the host of an agent puts into its prompt: the core blocks and the pinned ones, as Markdown."""
    with Workspace.open(policy, state=state) as workspace:
        found = workspace.context(require_agent(workspace, agent))
    if json:
        print_json(found.to_json())
    elif found.text:
        print_text(found.text)


def list_(
    policy: PolicyArgument, agent: OwnerOption = None, json: JsonOption = False, state: StateOption = None
) -> None:
    """Print the blocks of an agent and the shared ones, or the shared ones alone."""
    with _blocks(policy, agent, state) as blocks:
        found = [blocks.info(record.label) for record in blocks.list()]
    if json:
        print_json([_row(info) for info in found])
        return
    for info in found:
        print_line(_line(info))
    if not found:
        print_line("there is no block")


def show(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print all that a block holds: text as it is, anything else as JSON."""
    with _blocks(policy, agent, state) as blocks:
        info, value = blocks.info(label), blocks.value(label)
    if json or not isinstance(value, str):
        print_json({**_row(info), "content": value} if json else value)
    else:
        print_text(value)


def create(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    type: TypeOption = None,  # noqa: A002
    schema: Annotated[str | None, typer.Option("--schema", metavar="JSON", help="what it holds, else text")] = None,
    content: Annotated[
        str | None,
        typer.Option("--content", metavar="FILE", help="what is in it, text or JSON by the schema; - is stdin"),
    ] = None,
    permission: LevelOption = None,
    limit: LimitOption = None,
    description: DescriptionOption = None,
    pin: PinOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Make a block for an agent, or one that all share."""
    made = TextSchema() if schema is None else schema_from_json(_json(schema, "--schema"))
    held = None if content is None else _content(content, is_text=isinstance(made, TextSchema))
    with _blocks(policy, agent, state) as blocks:
        blocks.create(
            label,
            made,
            author=user_name(),
            content=held,
            type=type or BlockType.WORKING,
            permission=permission or Permission.READ_WRITE,
            pinned=bool(pin),
            description=description or "",
            char_limit=limit,
        )
        _print(blocks.info(label), json=json)


def set_(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    type: TypeOption = None,  # noqa: A002
    permission: LevelOption = None,
    limit: LimitOption = None,
    description: DescriptionOption = None,
    pin: PinOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Change what a block is: its type, level, limit, description, and whether it is pinned."""
    with _blocks(policy, agent, state) as blocks:
        author = user_name()
        blocks.settings(
            label, author=author, permission=permission, description=description, char_limit=limit, type=type
        )
        if pin is not None:
            blocks.note(label, "pin" if pin else "unpin", author=author, granted=Action.DELETE)
        _print(blocks.info(label), json=json)


def edit(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    append: Annotated[
        str | None, typer.Option("--append", metavar="TEXT", help="add text, an item or an entry")
    ] = None,
    replace: Annotated[
        tuple[str, str] | None, typer.Option("--replace", metavar="OLD NEW", help="the first OLD becomes NEW")
    ] = None,
    field: Annotated[
        tuple[str, str] | None, typer.Option("--set", metavar="FIELD JSON", help="give a field a value")
    ] = None,
    content: Annotated[str | None, typer.Option("--content", metavar="FILE", help="all of it anew; - is stdin")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="take your own last edit back")] = False,
    section: Annotated[str | None, typer.Option("--section", metavar="NAME", help="of a block with sections")] = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Change what a block holds: --append, --replace, --set, --content or --undo."""
    with _blocks(policy, agent, state) as blocks:
        made: list[Edit] = []
        if append is not None:
            made.append(Append(append, section))
        if replace is not None:
            made.append(Replace(*replace, section=section))
        if field is not None:
            made.append(SetField(field[0], _json(field[1], "--set"), section))
        if content is not None:
            is_text = isinstance(blocks.get(label).schema, TextSchema)
            made.append(Overwrite(_content(content, is_text=is_text), section))
        if undo:
            made.append(Undo())
        if len(made) != 1:
            raise UsageProblem("say one of --append, --replace, --set, --content, --undo")
        blocks.edit(label, made[0], author=user_name(), granted=Action.DELETE)
        _print(blocks.info(label), json=json)


def archive(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Put a working block away: out of context, found by its words, unchanged by agents."""
    with _blocks(policy, agent, state) as blocks:
        blocks.note(label, "archive", author=user_name(), granted=Action.DELETE)
        _print(blocks.info(label), json=json)


def unarchive(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Make a block that was put away a working one again."""
    with _blocks(policy, agent, state) as blocks:
        blocks.note(label, "unarchive", author=user_name(), granted=Action.DELETE)
        _print(blocks.info(label), json=json)


def history(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="how many of the last steps")] = 100,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the last steps of a block, the oldest first: when, who, what."""
    with _blocks(policy, agent, state) as blocks:
        steps = blocks.history(label, limit=limit)
    rows = [
        {"number": step.number, "at": iso_utc(step.at_s), "author": step.author, "kind": step.kind} for step in steps
    ]
    if json:
        print_json(rows)
        return
    for row in rows:
        print_line(f"{row['number']}  {row['at']}  {row['author'] or '-'}  {row['kind']}")


def delete(
    policy: PolicyArgument,
    label: LabelArgument,
    agent: OwnerOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Forget a block with its history."""
    with _blocks(policy, agent, state) as blocks:
        record = blocks.delete(label, granted=Action.DELETE)
    if json:
        print_json({"deleted": record.label})
    else:
        print_line(f"{record.label} deleted")


@contextmanager
def _blocks(policy: Path, agent: str | None, state: str | None) -> Generator[BlockService]:
    """The blocks of an agent, or the shared ones; impossible requests become usage problems."""
    with Workspace.open(policy, state=state) as workspace:
        try:
            yield workspace.blocks("" if agent is None else require_agent(workspace, agent))
        except ToolFailure as failure:
            raise UsageProblem(str(failure)) from None


def _json(text: str, option: str) -> JsonValue:
    try:
        return jsonlib.loads(text)
    except ValueError as error:
        raise UsageProblem(f"{option} is no JSON: {error}") from None


def _content(path: str, *, is_text: bool) -> JsonValue:
    text = decode(read_content(path), f"`{path}`")
    return text if is_text else _json(text, f"`{path}`")


def _row(info: BlockInfo) -> dict[str, JsonValue]:
    record = info.record
    return {
        "label": record.label,
        "owner": record.owner,
        "type": str(record.type),
        "permission": str(info.permission),
        "pinned": record.pinned,
        "description": record.description,
        "chars": info.size.chars,
        "char_limit": record.char_limit,
        "archived_at": None if record.archived_at is None else iso_utc(record.archived_at),
    }


def _line(info: BlockInfo) -> str:
    record = info.record
    limit = f" of {record.char_limit:,}" if record.char_limit else ""
    facts = [str(record.type), str(info.permission), f"{info.size.chars:,}{limit} characters"]
    facts += ["pinned"] * record.pinned + ["shared"] * (not record.owner)
    return f"{record.label}  {', '.join(facts)}"


def _print(info: BlockInfo, *, json: bool) -> None:
    if json:
        print_json(_row(info))
    else:
        print_line(_line(info))


def inbox(
    policy: PolicyArgument,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="the agent whose messages; else those to the user")
    ] = None,
    take: Annotated[bool, typer.Option("--take", help="take them out: they wait no more")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="how many at most")] = 100,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the messages that wait, the oldest first."""
    with Workspace.open(policy, state=state) as workspace:
        held = workspace.inbox("" if agent is None else require_agent(workspace, agent))
        messages = held.take(limit=limit) if take else held.list(limit=limit)
    if json:
        print_json([message.to_json() for message in messages])
    else:
        print_messages(messages)


def adopt(policy: PolicyArgument, json: JsonOption = False, state: StateOption = None) -> None:
    """Take over blocks, archive, messages and notes that were made elsewhere: from then on models are told them."""
    with Workspace.open(policy, state=state) as workspace:
        adopted = workspace.adopt_memory(who=user_name())
    if json:
        print_json({"adopted": [str(path) for path in adopted]})
        return
    for path in adopted:
        print_line(f"adopted {path}")
    if not adopted:
        print_line("there is no foreign memory")
