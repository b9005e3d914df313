"""Finds the arguments of a foreign tool that are paths on disk, and how a call uses each.

A name alone says little, so name, `format`, description and neighbours count together. A likely path elsewhere (in a
repository on a server, in a bucket, in a JSON document) gets low confidence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.schema.flat import snake
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import EACH, EACH_MEMBER, Confidence, Steps, path_text, steps_of
from gatewright.schema.walk import Schema, as_list, as_object, finder, in_place, items_of, objects, properties_of

PathUseName = Literal["read", "write", "delete"]

MAX_DEPTH = 8
MAX_PLACES = 4_000
_FORMATS = frozenset({"path", "file-path", "directory-path", "filepath"})
_PATHS = frozenset(
    {"path", "paths", "filepath", "filepaths", "pathname", "pathnames", "dirpath", "directory", "directories", "dir"}
    | {"dirs", "cwd", "folderpath", "basedir", "workdir"}
)
_FILES = frozenset({"file", "files", "filename", "filenames", "folder", "folders", "root", "images"})
_ENDS = frozenset({"source", "src", "destination", "dest", "dst", "target", "output", "input", "from", "to"})
_NEVER = frozenset(
    {"id", "ids", "uid", "uuid", "gid", "url", "urls", "uri", "uris", "prefix", "pattern", "patterns", "glob", "type"}
    | {"format", "arn", "profile", "content", "contents", "text", "data", "size", "count", "key", "title", "query"}
    | {"mailbox", "branch", "extension", "encoding", "regex", "strategy", "password", "username", "name", "names"}
)
_OF_FILES = frozenset({"file", "files", "folder", "folders", "directory", "directories", "dir", "path", "tree"})
_LOCAL = late_regex(
    r"\babsolute (?:\w+ )?(?:paths?|director)|\b(?:full|local) (?:\w+ )?paths?\b|\blocal files?\b|\bfile ?system\b"
    r"|\bfull absolute\b|\(absolute paths?\)",
    re.IGNORECASE,
)
_SAID = late_regex(r"\bpaths?\b|\bdirector(?:y|ies)\b|\bfolders?\b", re.IGNORECASE)
_ELSEWHERE = late_regex(
    r"\bjson ?-?path|\bxpath|\b(?:url|api|http|endpoint|request|iam|resource|property|key|object|mount) paths?\b"
    r"|\bmailbox|\bs3\b|\bbuckets?\b|\bobject key"
    r"|\b(?:in|within|inside) (?:the |a )?(?:repo|repository|project|container)"
    r"|\bpaths? (?:in|within|inside|on) (?:the |a )?(?:repo|repository|remote|bucket|container|server|device|pod)\b"
    r"|\bremote\b|\bon the server\b|\bendpoint'?s?\b|\bto the property\b|\bin the workspace\b"
    r"|\b(?:web|page|route)s? path|\bendpoint|\bfields?\b|\b(?:email|drafts?) folder",
    re.IGNORECASE,
)
_THERE = late_regex(
    r"\b(?:e-?mails?|mailbox(?:es)?|gitlab|github|bitbucket|redis|grafana|postman|iam|coolify|jira|crawl(?:s|er|ing)?"
    r"|websites?|mongo\w*|aggregation)\b",
    re.IGNORECASE,
)
_THERE_BY_NAME = frozenset({"ssh", "s3", "ftp", "sftp", "adb"})
_BESIDE = frozenset(
    {"owner", "repo", "repo_name", "project_id", "bucket", "bucket_name", "container", "container_id", "pod", "host"}
    | {"hostname", "server", "spec_id", "namespace", "repository", "collection_id", "project_key", "uuid"}
)
_READS = frozenset(
    re.findall(
        r"\w+",
        """
    read get list show view search find cat head tail stat info status diff log grep query describe inspect analyze
    analyse check open load tree validate parse lint count blame browse scan discover upload attach send transcribe
    import summarize summarise compare verify preview extract detect examine explain review watch fetch print
    """,
    )
)
_WRITES = frozenset(
    re.findall(
        r"\w+",
        """
    write create make mkdir save edit update append insert replace patch put add commit checkout apply download
    export record generate render convert modify set touch init clone build deploy reset stash restore format
    store prepend truncate chmod chown link symlink merge pull rebase
    """,
    )
)
_DELETES = frozenset({"delete", "remove", "rm", "rmdir", "unlink", "clean", "purge", "trash", "erase", "destroy"})
_TAKES_AWAY = _DELETES | {"drop", "wipe", "truncate", "uninstall", "forget", "discard", "destruct", "shred"}
_MOVES = frozenset({"move", "mv", "rename", "relocate"})
_COPIES = frozenset({"copy", "cp", "duplicate"})
_TO = frozenset({"output", "out", "destination", "dest", "dst", "save", "target", "to", "new"})
_FROM = frozenset({"source", "src", "from", "old", "input", "template", "config"})
_SPELLS = late_regex(r"[/\\~$%:]")
"""An absolute path holds at least one of these signs."""
_BRANCHES = ("allOf", "anyOf", "oneOf")
_SAVES = late_regex(r"\b(?:sav(?:e|ed|ing)|written|writes?|stor(?:e|ed)|output)\b", re.IGNORECASE)


@frozen
class PathCandidate:
    """An argument that looks like a path: its place (``edits[].path``), which holds a text or a list of texts.

    ``saves``: its description says that the tool writes there. ``tool``: the name of its tool.
    """

    argument: str
    confidence: Confidence
    tool: str = ""
    saves: bool = False

    def use(self, operation: str = "") -> PathUseName | None:
        """Guess how a call of ``operation`` uses the path, by its words; None if they do not tell.

        ``operation`` is empty for a tool without operations.
        """
        names = [step for step in steps_of(self.argument) if step not in {EACH, EACH_MEMBER}]
        own = _words(self.tool.rpartition(".")[2])  # the part before a dot may be the catalog's name
        return _use(_words(names[-1]), (*_words(operation), *own, *_words(self.tool)), saves=self.saves)


def discover_paths(schema: Schema, *, tool: str = "", description: str = "") -> tuple[PathCandidate, ...]:
    """Find the arguments of ``schema`` that look like paths on disk, in the schema's order.

    ``tool`` and ``description`` are the tool's own. Raises SchemaError for unresolvable references.
    """
    inlined = inline_references(schema)
    beside = {snake(name) for name in properties_of(inlined)}
    words = _words(tool)
    away = bool(beside & _BESIDE) or bool(_THERE_BY_NAME.intersection(words))
    away = away or bool(_THERE.search(f"{' '.join(words)} {description}"))
    about = bool(_OF_FILES.intersection(words))
    found: dict[str, PathCandidate] = {}
    for steps, node in _places(inlined):
        name = next((step for step in reversed(steps) if step not in {EACH, EACH_MEMBER}), "")
        sure = _confidence(name, node, about=about, away=away) if _takes_text(node) else None
        if sure is not None:
            argument = path_text(steps)
            found.setdefault(argument, PathCandidate(argument, sure, tool, bool(_SAVES.search(_prose(node)))))
    if any(one.confidence == "high" for one in found.values()):
        return tuple(replace(one, confidence="high") if one.confidence == "medium" else one for one in found.values())
    return tuple(found.values())


def deed_of(name: str) -> PathUseName | None:
    """Return the use that the first known verb in the name of an operation or tool implies; None without such a
    verb.
    """
    for word in _words(name.rpartition(".")[2]):
        if word in _TAKES_AWAY:
            return "delete"
        if word in _READS:
            return "read"
        if word in _WRITES or word in _MOVES or word in _COPIES:
            return "write"
    return None


def text_places(schema: Schema) -> tuple[str, ...]:
    """Return every place of a text or of a list of texts in ``schema``, as `edits[].path`. Raises SchemaError."""
    found = (path_text(steps) for steps, node in _places(inline_references(schema)) if _takes_text(node))
    return tuple(dict.fromkeys(found))


def holds_text(schema: Schema, skipped: Collection[str] = ()) -> bool:
    """Tell whether arguments that fit ``schema`` may hold a text that could be a path, names of members included.

    Arguments in ``skipped``, and those that the schema does not name, do not count. In doubt the answer is True.
    """
    try:
        return _holds_text(inline_references(schema), skipped)
    except SchemaError:
        return True


def _holds_text(node: object, skipped: Collection[str] | None = None) -> bool:
    """Tell the same of one value; ``skipped`` is None for any value but the arguments as a whole."""
    held = as_object(node)
    if held is None or "$ref" in held:
        return node is not False
    if "const" in held or "enum" in held:
        given = [held["const"]] if "const" in held else as_list(held["enum"]) or []
        return any(isinstance(one, dict | list) or (isinstance(one, str) and _SPELLS.search(one)) for one in given)
    named = held.get("type")
    kinds = None if named is None else set(as_list(named) or [named])
    if kinds is not None and kinds.isdisjoint({"string", "object", "array"}):
        return False
    if kinds is not None and "string" in kinds:
        return True
    branches = [one for word in _BRANCHES for one in as_list(held.get(word)) or ()]
    branches += [held[word] for word in ("then", "else") if word in held]
    if any(_holds_text(one, skipped) for one in branches):
        return True
    is_list = kinds is not None and "array" in kinds
    is_object = "properties" in held or (kinds is not None and "object" in kinds)
    if kinds is None and not branches and not is_object:
        return "items" not in held or _holds_text(held["items"])
    if is_list and (_items_hold_text(held) or "prefixItems" in held):
        return True
    return is_object and _members_hold_text(held, skipped)


def _items_hold_text(held: Schema) -> bool:
    items = as_list(held.get("items"))
    return any(map(_holds_text, items)) if items is not None else _holds_text(held.get("items", True))


def _members_hold_text(held: Schema, skipped: Collection[str] | None) -> bool:
    if any(_holds_text(one) for name, one in properties_of(held).items() if name not in (skipped or ())):
        return True
    if skipped is not None:
        return "patternProperties" in held
    closed = held.get("additionalProperties") is False or held.get("unevaluatedProperties") is False
    return not closed or "patternProperties" in held


def _places(schema: Schema) -> Iterator[tuple[Steps, Schema]]:
    """Yield every place of a named value, outermost first; the items of a list of texts share the list's place."""
    find = finder(schema)
    stack: list[tuple[Steps, Schema]] = [((), schema)]
    for _ in range(MAX_PLACES):
        if not stack:
            return
        steps, place = stack.pop()
        inner: list[tuple[Steps, Schema]] = []
        for node in in_place(place, find, tests=False):
            if steps:
                yield steps, node
            inner += [
                ((*steps, name), held) for name, value in properties_of(node).items() if (held := as_object(value))
            ]
            inner += [((*steps, EACH), held) for held in items_of(node) if not _is_text(held)]
            others = as_object(node.get("additionalProperties"))
            inner += [((*steps, EACH_MEMBER), others)] if others else []
        stack += reversed(inner) if len(steps) < MAX_DEPTH else ()


def _takes_text(node: Schema) -> bool:
    """Tell whether any text, or a list of any texts, fits, rather than one of a few."""
    if any(_takes_text(branch) for keyword in ("anyOf", "oneOf") for branch in objects(node.get(keyword))):
        return True
    return _is_text(node) or any(map(_is_text, items_of(node)))


def _is_text(node: Schema) -> bool:
    kinds = node.get("type")
    named = kinds == "string" or "string" in (as_list(kinds) or ())
    return named and "enum" not in node and "const" not in node


def _confidence(name: str, node: Schema, *, about: bool, away: bool) -> Confidence | None:
    if node.get("format") in _FORMATS:
        return "high"
    words, said = _words(name), _prose(node)
    last = words[-1]
    if last in _NEVER:
        return None
    local = bool(_LOCAL.search(said))
    is_path = last in _PATHS or (words[0] in {"path", "file", "dir"} and len(words) > 1 and last in _PATHS | _FILES)
    is_file = last in _FILES or (last in _ENDS and about) or words[0] in _PATHS | {"files"}
    told = bool(_SAID.search(said))
    if not (is_path or local or (is_file and (told or about or last in _FILES)) or (last in _ENDS and told)):
        return None
    default = node.get("default")  # `$` of a JSON document, or an address: no path on disk
    starts_elsewhere = isinstance(default, str) and (default.startswith("$") or "://" in default)
    elsewhere = bool(_ELSEWHERE.search(said)) or starts_elsewhere or "remote" in words
    if elsewhere or (away and not local):
        return "low"
    if is_path or local or (is_file and (told or about)):
        return "high"
    return "medium" if is_file else "low"


def _prose(node: Schema) -> str:
    texts = [node.get("description"), node.get("title")]
    texts += [item.get("description") for item in items_of(node)]
    return " ".join(text for text in texts if isinstance(text, str))


def _words(name: str) -> list[str]:
    return re.split(r"[_.:/ ]", snake(name))


def _use(name: list[str], verbs: tuple[str, ...], *, saves: bool) -> PathUseName | None:
    """Guess the use of a path: by the first verb, and by the argument's role in it."""
    to, source = bool(_TO.intersection(name)), bool(_FROM.intersection(name))
    for verb in verbs:
        if verb in _MOVES:
            return "write" if to else "delete"
        if verb in _COPIES:
            return "write" if to or not source else "read"
        if verb in _DELETES:
            return "delete"
        if verb in _READS:
            return "write" if to or saves else "read"
        if verb in _WRITES:
            return "read" if source and not to else "write"
    return "write" if to else None
