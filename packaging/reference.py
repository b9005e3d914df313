"""The pages of the documentation that the engine's own tables write: the reference of the policy, and the commands.

ProperDocs calls `on_files` (`hooks` of mkdocs.yml).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from properdocs.structure.files import File

from gatewright.base.row import DURATION, SIZE
from gatewright.cli.table import COMMANDS, EXAMPLES, EXITS, GROUPS, command_line, line_of
from gatewright.gate.decision import Message
from gatewright.gate.pipeline import DECIDING, STAGES
from gatewright.policy.capability import CAPABILITIES
from gatewright.policy.rule import RULE_KINDS
from gatewright.policy.verdict import Action, Permission, verdict_for
from gatewright.policyfile import policy_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from properdocs.config.defaults import ProperDocsConfig
    from properdocs.structure.files import Files

_ABOUT = f"""\
`gatewright` alone opens the app; `python -m gatewright` is the same. Every command but `gui` takes `--json`, all take
`--help`. In the place of arguments, a schema, paths or the content of a block `-` reads standard input. What a command
found is on standard output, what it says of its work and of errors on standard error, both without colours. Control,
bidi and invisible characters are printed as `\\uXXXX`; `call`, `export` and `rules` keep them where they write to a
pipe or a file.

{EXITS}
"""
_TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "table", "array": "list"}


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    files.append(File.generated(config, "reference.md", content="\n".join(_reference())))
    files.append(File.generated(config, "commands.md", content="\n".join(_commands())))
    return files


def _reference() -> Iterator[str]:
    yield "# Keys, kinds, levels, stages"
    yield "\nWritten from the engine's own tables; what they are for is told with [the policy file](policy.md).\n"
    schema = policy_schema()
    yield from _tables("The file", schema)
    yield "\n## Kinds of tool rules\n"
    yield from _table(
        ("kind", "value", "means", "also at a source"),
        (
            (f"`{name}`", _words(kind.shape) if kind.shape else "none", _first(kind.__doc__), _yes(kind.fits_source))
            for name, kind in RULE_KINDS.items()
        ),
    )
    yield "\n## Capabilities\n"
    yield from _table(
        ("capability", "limited by", "grants"),
        (
            (
                f"`{name}`",
                "<br>".join(f"`{key}`: {_words(shape)}" for key, shape in kind.keys.items()),
                _first(kind.__doc__),
            )
            for name, kind in CAPABILITIES.items()
        ),
    )
    yield "\n## Levels of files and blocks\n"
    levels = ((f"`{level}`", *(str(verdict_for(level, action)) for action in Action)) for level in Permission)
    yield from _table(("level", *Action), levels)
    yield "\n## Stages of a call\n"
    yield "In this order. A stage that denies ends the call; what asks is gathered and asked once, at `approval`.\n"
    yield from _table(("stage", "when", "does"), ((f"`{one.name}`", _when(one), _said_by(one)) for one in STAGES))
    yield "\n## What the model is told\n"
    yield f"After `{Message.PREFIX}`; what a rule, a schema or a message of your own says is told in its words.\n"
    words = {name: text for name, text in vars(Message).items() if name.isupper() and isinstance(text, str)}
    yield from _table(("words",), ((text,) for name, text in words.items() if name != "PREFIX"))


def _when(stage: object) -> str:
    return "`decide` and `call`" if stage in DECIDING else "`call`, once it is allowed"


def _said_by(stage: Any) -> str:
    return _first(stage.run.__doc__)


def _tables(title: str, shape: Any) -> Iterator[str]:
    """The keys of a table, then the tables in it."""
    yield f"\n## {title}\n"
    keys: dict[str, Any] = shape["properties"]
    needed = shape.get("required", ())
    yield from _table(
        ("key", "value", "means", "when it is absent"),
        (
            (
                f"`{key}`",
                _words(inner),
                inner.get("description", ""),
                "it is needed" if key in needed else _absent(inner),
            )
            for key, inner in keys.items()
        ),
    )
    for key, inner in keys.items():
        path = key if title == "The file" else f"{title.strip('`[]')}.{key}"
        if key not in {"tool_rules", "required_tools"} or path.startswith("agents"):
            yield from _inner(path, inner)


def _inner(path: str, shape: Any) -> Iterator[str]:
    if shape.get("properties"):
        yield from _tables(f"`[{path}]`", shape)
    elif isinstance(shape.get("additionalProperties"), dict) and "properties" in shape["additionalProperties"]:
        yield from _tables(f"`[{path}.NAME]`", shape["additionalProperties"])
    elif shape.get("type") == "array":
        entry = shape["items"]
        variants = [one for one in entry.get("anyOf", [entry]) if path != "agents.NAME.capabilities"]
        merged: dict[str, Any] = {}
        for one in variants:
            merged |= one.get("properties", {})
        kinds = [one["properties"]["type"]["enum"][0] for one in variants if "type" in one.get("properties", {})]
        if len(variants) > 1 and kinds:
            merged["type"] = {"enum": list(dict.fromkeys(kinds)), "description": variants[0].get("description", "")}
        if merged:
            needed = set.intersection(*(set(one.get("required", ())) for one in variants))
            yield from _tables(f"`[[{path}]]`", {"properties": merged, "required": needed})


def _words(shape: Any) -> str:
    """What a value looks like, in a few words."""
    if {**shape, "description": "", "default": ""}.items() >= DURATION.items():
        return 'duration: `30` (seconds), `"1.5s"`, `"2m"`'
    if {**shape, "description": "", "default": ""}.items() >= SIZE.items():
        return 'size: `65536`, `"64KiB"`'
    if "const" in shape:
        return f"`{json.dumps(shape['const'])}`"
    if "enum" in shape:
        return ", ".join(f"`{one}`" for one in shape["enum"])
    if "anyOf" in shape:
        found = {_words(one): None for one in shape["anyOf"]}
        return " or ".join(found) if len(found) < 4 else "one kind: [below](#kinds-of-tool-rules)"
    kind = shape.get("type")
    if isinstance(kind, list):
        return "JSON Schema"
    if kind == "array":
        entry = shape["items"]
        return f"list of {_words(entry)}" if entry.get("type") in {"string", "array"} or "enum" in entry else "list"
    if kind == "object" and shape.get("properties") and "description" not in shape:
        return "table: " + ", ".join(f"`{key}`" for key in shape["properties"])
    return _TYPES.get(kind or "", "any")


def _absent(shape: Any) -> str:
    return f"`{json.dumps(shape['default'])}`" if "default" in shape else ""


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield _ABOUT
    tree: Any = command_line([*COMMANDS, *GROUPS])
    for name, command in tree.commands.items():
        if command.name in GROUPS:
            yield f"\n## {name}\n\n{command.help}\n"
            for word, one in command.commands.items():
                yield from _command(f"{name} {word}", one, "###")
        else:
            yield from _command(name, command, "##")


def _command(name: str, command: Any, head: str) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in {"help", "json"}]
    words = " ".join(one.metavar or one.name.upper() for one in arguments)
    yield f"\n{head} {name}\n\n{_first(command.help)}\n"
    yield f"`gatewright {name}{' ' * bool(words)}{words}`\n"
    rows = [(f"`{', '.join(one.opts)}{' ' + one.metavar if one.metavar else ''}`", one.help or "") for one in options]
    if rows:
        yield from _table(("option", "means"), rows)
    examples = "\n".join(map(line_of, EXAMPLES[name]))
    yield f"```sh\n{examples}\n```\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    cells = list(head)
    yield f"| {' | '.join(cells)} |"
    yield f"|{'---|' * len(cells)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
    yield ""


def _first(text: str | None) -> str:
    """The first paragraph of a docstring, without its last full stop and with one backtick in place of two."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("``", "`").removesuffix(".")


def _yes(value: bool) -> str:
    return "yes" if value else ""
