"""The profile for macOS as text: read here as Seatbelt is documented to read it, and compared with what is to hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.target import Confinement, Place, Tree, View
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import seatbelt_profile
from gatewright.sources.roomview import Mount, MountKind, RoomPlan, RoomViews

_TOKEN = re.compile(r'\s+|;[^\n]*|([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+)')
Form = str | list["Form"]


def read(text: str) -> list[Form]:
    """The forms of a profile; a text in quotes keeps them in front."""
    stack: list[list[Form]] = [[]]
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, text[at : at + 40]
        at = found.end()
        bracket, quoted, word = found.groups()
        if bracket == "(":
            stack.append([])
        elif bracket == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif quoted is not None:
            stack[-1].append('"' + re.sub(r"\\(.)", r"\1", quoted))
        elif word:
            stack[-1].append(word)
    assert len(stack) == 1
    return stack[0]


def fits(form: Form, path: str) -> bool:
    """Tell whether a filter takes a path."""
    assert isinstance(form, list)
    match form:
        case ["literal", str(text)]:
            return path == text[1:]
        case ["subpath", str(text)]:
            return path == text[1:] or path.startswith(f"{text[1:].rstrip('/')}/")
        case ["regex", str(text)]:
            return re.search(text[1:], path, re.DOTALL) is not None
        case ["require-all", *parts]:
            return all(fits(one, path) for one in parts)
        case ["require-any", *parts]:
            return any(fits(one, path) for one in parts)
        case ["require-not", one]:
            return not fits(one, path)
        case _:
            return False


def allows(profile: Sequence[Form], operation: str, path: str) -> bool:
    """Tell what the last form says that is about an operation and a path."""

    def covers(name: str) -> bool:
        return name in {operation, "default"} or (name.endswith("*") and operation.startswith(name[:-1]))

    verdict = False
    for form in profile:
        assert isinstance(form, list)
        if form[0] not in {"allow", "deny"}:
            continue
        names = [one for one in form[1:] if isinstance(one, str)]
        filters = [one for one in form[1:] if isinstance(one, list)]
        if any(map(covers, names)) and (not filters or any(fits(one, path) for one in filters)):
            verdict = form[0] == "allow"
    return verdict


def seen(profile: Sequence[Form], path: str) -> View:
    """The view that a process has of a path."""
    if not allows(profile, "file-read-data", path):
        assert not allows(profile, "file-write-data", path)
        return View.ABSENT
    return View.WRITE if allows(profile, "file-write-data", path) else View.READ


RANK = {View.ABSENT: 0, View.READ: 1, View.WRITE: 2}
NAMES = ("a", "b.md", "secret", "x-1", "ä", "n[1]", "p.env", '"q"', "back\\slash", "$x")
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
plain = st.lists(
    st.sampled_from(
        ["a", "b.md", "secret", "*", "**", "*.md", "s?cret", "[ab]*", "[!a]", "ä", "x-[0-9]", "[]^-]x", '"q"', "\\$x"]
    ),
    min_size=1,
    max_size=3,
)
ends = st.sampled_from(["", "/"])
patterns = st.tuples(ends, plain, ends).map(lambda parts: parts[0] + "/".join(parts[1]) + parts[2])
rules = st.lists(st.builds(PermissionRule, patterns, st.sampled_from(list(Permission))), max_size=4).map(tuple)
trees = st.lists(
    st.builds(Tree, st.sampled_from(["/w", "/w/a", "/w/a/secret"]), st.sampled_from(list(Permission)), rules),
    max_size=3,
)
uses = st.sampled_from([PlaceUse.READ, PlaceUse.WRITE])
places = st.lists(
    st.builds(Place, st.sampled_from(["/w", "/w/a", "/w/b.md"]), uses), max_size=3, unique_by=lambda one: one.path
)
some_paths = st.lists(paths.map(lambda path: f"/w/{path}"), max_size=2).map(tuple)


@settings(max_examples=400)
@given(places=places, trees=trees, closed=some_paths, fixed=some_paths, path=paths)
def test_profile_gives_what_the_views_give_and_never_more(
    places: list[Place], trees: list[Tree], closed: tuple[str, ...], fixed: tuple[str, ...], path: str
) -> None:
    held = Confinement(tuple(places), tuple(trees), closed, fixed)
    profile, views = read(seatbelt_profile(held, RoomPlan())), RoomViews(held)
    at = f"/w/{path}"
    found, wanted = seen(profile, at), [views.view(at, folder=folder) for folder in (False, True)]
    assert RANK[found] <= max(RANK[one] for one in wanted), (found, wanted)
    is_sayable = not any(rule.pattern.endswith("/") or "[" in rule.pattern for tree in trees for rule in tree.rules)
    if is_sayable:
        assert found is wanted[0]


def test_what_is_outside_of_all_places_is_closed_and_the_system_is_read() -> None:
    profile = read(seatbelt_profile(Confinement((Place("/w", PlaceUse.WRITE),), programs=("/opt/node",)), RoomPlan()))
    for path in ("/Users/me/.ssh/id", "/private/etc/passwd", "/private/tmp/x", "/w2/x", "/opt/other", "/Volumes/x"):
        assert seen(profile, path) is View.ABSENT, path
    for path in ("/usr/lib/libSystem.B.dylib", "/bin/sh", "/opt/node/bin/node"):
        assert seen(profile, path) is View.READ, path
    assert seen(profile, "/w/x") is View.WRITE
    assert not allows(profile, "network-outbound", "/w")


@pytest.mark.parametrize(("hosts", "port", "expected"), [((), 1, 0), (("x.org",), None, 0), (("x.org",), 4711, 1)])
def test_network_is_the_port_of_the_proxy_or_none(hosts: tuple[str, ...], port: int | None, expected: int) -> None:
    text = seatbelt_profile(Confinement(hosts=hosts), RoomPlan(), proxy_port=port)
    assert text.count("network") == expected
    assert text.count('(remote ip "localhost:4711")') == expected


def test_snapshot_is_granted_where_its_copy_is_and_what_a_plan_hides_is_closed() -> None:
    held = Confinement((Place("/w", PlaceUse.SNAPSHOT),))
    plan = RoomPlan((Mount(MountKind.WRITE, "/w", origin="/copy"), Mount(MountKind.HIDE_FILE, "/copy/key")))
    profile = read(seatbelt_profile(held, plan, own="/own"))
    views = [seen(profile, path) for path in ("/w/x", "/copy/x", "/copy/key", "/own/tmp")]
    assert views == [View.ABSENT, View.WRITE, View.ABSENT, View.WRITE]


def test_profile_says_that_nobody_tried_it() -> None:
    assert "Untested" in seatbelt_profile(Confinement(), RoomPlan()).splitlines()[0]
