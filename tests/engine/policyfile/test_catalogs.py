"""`[[catalogs]]`: how entries are read, and how the tools of their manifests join the known ones."""

import pytest

from gatewright.base.errors import Place, Severity
from gatewright.policy.document import Catalog, CatalogType, Confine, PlaceUse
from gatewright.policy.right import ToolFacts
from gatewright.policyfile import CatalogFacts, KnownTools
from tests.engine.policyfile.catalog import BARE, FACTS, load, policy_of, stranger

HEAD = "gatewright = 1\n"
ENTRY = "[[catalogs]]\nid = 'cal'\ntype = 'host'\nmanifest = 'calendar.json'\n"
SERVER = "[[catalogs]]\nid = 'srv'\ntype = 'mcp'\n"
HTTP = "[[catalogs]]\nid = 'x'\ntype = 'http'\nmanifest = 'm.json'\nurl = 'https://h'\n"
STARTED = "[[catalogs]]\nid = 'x'\ntype = 'subprocess'\nmanifest = 'm.json'\ncommand = 'c'\n"
MODULE = "[[catalogs]]\nid = 'x'\ntype = 'wasm'\nmanifest = 'm.json'\nmodule = 'm.wasm'\n"
USE = "[agents.a]\ntools = ['calendar']\n"


def _known(**manifests: CatalogFacts) -> KnownTools:
    """Catalogs by the stems of their manifests; a manifest that is not among them is a test's mistake."""
    return KnownTools(
        FACTS, catalogs=lambda catalogs: tuple(manifests[one.manifest.removesuffix(".json")] for one in catalogs)
    )


def _facts(*names: str, version: str = "1.0.0") -> tuple[ToolFacts, ...]:
    return tuple(stranger(name, version, verb=None).facts() for name in names)


def test_an_entry_is_read_and_its_tools_may_be_named() -> None:
    policy = policy_of(f"{HEAD}{USE}{ENTRY}trusted = true\n")

    assert policy.catalogs == (Catalog("cal", CatalogType.HOST, "calendar.json", trusted=True),)


def test_without_the_entry_its_tools_are_unknown() -> None:
    assert [problem.code for problem in load(HEAD + USE).problems] == ["unknown-tool"]


def test_a_tool_of_a_catalog_is_declared_in_the_same_file() -> None:
    declared = "[tools.calendar]\noperation_field = 'verb'\noperations = ['add', 'drop']\n"
    rule = "[[agents.a.tool_rules]]\ntool_name = 'calendar'\nrule_type = { AllowedOperations = ['add'] }\n"

    assert policy_of(f"{HEAD}{declared}{USE}{rule}{ENTRY}").tools["calendar"].operations == ("add", "drop")


SOURCES = (
    "[[sources]]\nid = 'notes'\ntype = 'file'\nbase_path = 'n'\n"
    "[[sources]]\nid = 'news'\ntype = 'folder_changes'\nbase_path = 's'\n"
)
FAULTS = [
    ("[[catalogs]]\ntype = 'host'\nmanifest = 'm.json'\n", "missing-key", 2, 1, None),
    ("[[catalogs]]\nid = 'x'\nmanifest = 'm.json'\n", "missing-key", 2, 1, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'host'\n", "missing-key", 2, 1, None),
    ("[[catalogs]]\nid = ' '\ntype = 'host'\nmanifest = 'm.json'\n", "bad-value", 3, 6, None),
    ("[[catalogs]]\nid = 'built-in'\ntype = 'host'\nmanifest = 'm.json'\n", "bad-value", 3, 6, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'hots'\nmanifest = 'm.json'\n", "unknown-variant", 4, 8, "host"),
    ("[[catalogs]]\nid = 'x'\ntype = 'mpc'\ncommand = 'c'\n", "unknown-variant", 4, 8, "mcp"),
    ("[[catalogs]]\nid = 'x'\ntype = 'http'\nurl = 'u'\nmanifest = 'm.json'\n", "bad-value", 5, 7, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'http'\nurl = 'https://h'\n", "missing-key", 2, 1, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'http'\nmanifest = 'm.json'\n", "missing-key", 2, 1, None),
    (f"{HTTP}command = 'c'\n", "key-of-other-type", 7, 1, None),
    (f"{HTTP}places = {{}}\n", "key-of-other-type", 7, 1, None),
    (f"{HTTP}headers_env = {{ A = 'Bearer x' }}\n", "bad-value", 7, 21, None),
    (HTTP.replace("'x'", "'../x'"), "bad-value", 3, 6, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'subprocess'\nmanifest = 'm.json'\n", "missing-key", 2, 1, None),
    (f"{STARTED}url = 'https://h'\n", "key-of-other-type", 7, 1, None),
    (f"{STARTED}module = 'm.wasm'\n", "key-of-other-type", 7, 1, None),
    (f"{STARTED}env = ['A=1']\n", "bad-value", 7, 8, None),
    (f"{STARTED}confine = 'nnoe'\n", "unknown-variant", 7, 11, "none"),
    (f"{STARTED}places = {{ notse = 'read' }}\n{SOURCES}", "unknown-source", 7, 12, "notes"),
    ("[[catalogs]]\nid = 'x'\ntype = 'wasm'\nmanifest = 'm.json'\n", "missing-key", 2, 1, None),
    (f"{MODULE}module = ''\n".replace("module = 'm.wasm'\n", ""), "bad-value", 6, 10, None),
    (f"{MODULE}confine = 'none'\n", "key-of-other-type", 7, 1, None),
    (f"{MODULE}places = {{ './a' = 'wirte' }}\n", "unknown-variant", 7, 20, "write"),
    (f"{ENTRY}{ENTRY.replace('cal', 'CAL', 1).replace('calendar', 'm')}", "duplicate", 7, 6, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'host'\nmanifest = ''\n", "bad-value", 5, 12, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'host'\nmanifest = '~/m.json'\n", "bad-value", 5, 12, None),
    ("[[catalogs]]\nid = 'x'\ntype = 'host'\nmanifest = 3\n", "wrong-type", 5, 12, None),
    (f"{ENTRY}trusted = 'yes'\n", "wrong-type", 6, 11, None),
    (f"{ENTRY}manifst = 'x'\n", "unknown-key", 6, 1, "manifest"),
    (f"{ENTRY}command = 'x'\n", "key-of-other-type", 6, 1, None),
    (f"{ENTRY}prefix = 'x.y'\n", "bad-value", 6, 10, None),
    (
        f"{ENTRY}prefix = 'x'\n{ENTRY.replace('calendar', 'm').replace('cal', 'b', 1)}prefix = 'x'\n",
        "duplicate",
        11,
        10,
        None,
    ),
    (f"{SERVER}command = 'c'\nhedaers_env = 'c'\n", "unknown-key", 6, 1, "headers_env"),
    (SERVER, "missing-key", 2, 1, None),
    (f"{SERVER}command = ''\n", "bad-value", 5, 11, None),
    (f"{SERVER}command = '~/c'\n", "bad-value", 5, 11, None),
    (f"{SERVER}command = ['c']\n", "wrong-type", 5, 11, None),
    (f'{SERVER}command = "a\\u202eb"\n', "bad-value", 5, 11, None),
    (f"{SERVER}command = 'c'\nmanifest = 'm'\n", "key-of-other-type", 6, 1, None),
    (f"{SERVER}command = 'c'\nmodule = 'm'\n", "key-of-other-type", 6, 1, None),
    (f"{SERVER}command = 'c'\nargs = 'x'\n", "wrong-type", 6, 8, None),
    (f"{SERVER}command = 'c'\nargs = ['x', 3]\n", "wrong-type", 6, 14, None),
    (f'{SERVER}command = "c"\nargs = ["a", "b\\u0000"]\n', "bad-value", 6, 14, None),
    (f"{SERVER}command = 'c'\nenv = ['A', 'TOKEN=secret']\n", "bad-value", 6, 13, None),
    (f"{SERVER}command = 'c'\nenv = ['A', 'A']\n", "duplicate", 6, 13, None),
    (f"{SERVER}command = 'c'\nenv = {{ A = 'secret' }}\n", "wrong-type", 6, 7, None),
    (f"{SERVER}command = 'c'\nheaders_env = {{ A = 'B' }}\n", "key-of-other-type", 6, 1, None),
    (f"{SERVER}command = 'c'\nurl = 'https://h'\n", "bad-value", 6, 1, None),
    (f"{SERVER}url = 'ftp://h'\n", "bad-value", 5, 7, None),
    (f"{SERVER}url = 'https://'\n", "bad-value", 5, 7, None),
    (f"{SERVER}url = 'https://[::1'\n", "bad-value", 5, 7, None),
    (f"{SERVER}url = 'https://me:secret@h/x'\n", "bad-value", 5, 7, None),
    (f"{SERVER}url = 'https://h'\nargs = []\n", "key-of-other-type", 6, 1, None),
    (f"{SERVER}url = 'https://h'\nheaders_env = {{ 'A B' = 'B' }}\n", "bad-value", 6, 17, None),
    (f"{SERVER}url = 'https://h'\nheaders_env = {{ A = 'Bearer x' }}\n", "bad-value", 6, 21, None),
    (f"{SERVER}url = 'https://h'\nheaders_env = {{ A = 'B', a = 'C' }}\n", "duplicate", 6, 26, None),
    (f"{SERVER.replace('srv', '../x')}command = 'c'\n", "bad-value", 3, 6, None),
    (f"{SERVER.replace('srv', 'CON.x')}command = 'c'\n", "bad-value", 3, 6, None),
    (f"{SERVER.replace('srv', 'x.')}command = 'c'\n", "bad-value", 3, 6, None),
    (f"{SERVER}command = 'c'\nconfine = 'nnoe'\n", "unknown-variant", 6, 11, "none"),
    (f"{SERVER}command = 'c'\nconfine = false\n", "wrong-type", 6, 11, None),
    (f"{SERVER}command = 'c'\nplaces = ['notes']\n", "wrong-type", 6, 10, None),
    (f"{SERVER}command = 'c'\nplaces = {{ './a' = 'wirte' }}\n", "unknown-variant", 6, 20, "write"),
    (f"{SERVER}command = 'c'\nplaces = {{ '~/a' = 'read' }}\n", "bad-value", 6, 12, None),
    (f"{SERVER}command = 'c'\nplaces = {{ ' ' = 'read' }}\n", "bad-value", 6, 12, None),
    (f"{SERVER}command = 'c'\nplaces = {{ notse = 'read' }}\n{SOURCES}", "unknown-source", 6, 12, "notes"),
    (f"{SERVER}command = 'c'\nplaces = {{ 'a/b' = 'read' }}\n{SOURCES}", "unknown-source", 6, 12, None),
    (f"{SERVER}command = 'c'\nplaces = {{ news = 'read' }}\n{SOURCES}", "bad-value", 6, 12, None),
    (f"{SERVER}url = 'https://h'\nplaces = {{}}\n", "key-of-other-type", 6, 1, None),
    (f"{SERVER}url = 'https://h'\nconfine = 'none'\n", "key-of-other-type", 6, 1, None),
    (f"{ENTRY}places = {{}}\n", "key-of-other-type", 6, 1, None),
    (f"{ENTRY}confine = 'policy'\n", "key-of-other-type", 6, 1, None),
    ("catalogs = 3\n", "wrong-type", 2, 12, None),
    ("[catalogs]\nid = 'x'\n", "wrong-type", 2, 1, None),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), FAULTS)
def test_a_fault_of_a_catalog_is_named_with_its_place(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    loaded = load(HEAD + body)

    (problem,) = loaded.problems
    assert loaded.policy is None
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)


def test_a_server_is_a_command_with_the_names_of_its_variables() -> None:
    keys = "command = 'uvx'\nargs = ['mcp-server-git', '--repository', '.']\nenv = ['HOME']\ncwd = 'repo'\n"
    (catalog,) = policy_of(f"{HEAD}{SERVER}{keys}prefix = 'git'\ntrusted = true\n").catalogs

    assert catalog == Catalog(
        "srv",
        CatalogType.MCP,
        trusted=True,
        prefix="git",
        command="uvx",
        args=("mcp-server-git", "--repository", "."),
        env=("HOME",),
        cwd="repo",
    )
    assert catalog.file == "catalogs/srv.json"


def test_a_server_is_an_address_with_headers_from_variables() -> None:
    keys = "url = 'https://h.example/mcp'\nheaders_env = { Authorization = 'HUB_TOKEN' }\n"

    assert policy_of(f"{HEAD}{SERVER}{keys}").catalogs == (
        Catalog(
            "srv",
            CatalogType.MCP,
            url="https://h.example/mcp",
            headers_env={"Authorization": "HUB_TOKEN"},
        ),
    )


def test_a_server_gets_its_places_and_without_any_word_of_them_waits_until_they_are_accepted() -> None:
    def server(keys: str) -> Catalog:
        (catalog,) = policy_of(f"{HEAD}{SERVER}command = 'c'\n{keys}{SOURCES}").catalogs
        return catalog

    assert (server("").confine, server("").places, server("").waits_for_places) == (Confine.POLICY, None, True)
    assert (server("places = {}\n").places, server("places = {}\n").waits_for_places) == ({}, False)
    assert not server("confine = 'none'\n").waits_for_places
    assert server("places = { notes = 'write', './d' = 'snapshot', '/srv/x' = 'read' }\n").places == {
        "notes": PlaceUse.WRITE,
        "./d": PlaceUse.SNAPSHOT,
        "/srv/x": PlaceUse.READ,
    }


@pytest.mark.parametrize("keys", ["env = ['TOKEN=hunter2']", "env = { TOKEN = 'hunter2' }"])
def test_a_secret_in_the_place_of_a_name_is_not_said_again(keys: str) -> None:
    (problem,) = load(f"{HEAD}{SERVER}command = 'c'\n{keys}\n").problems

    assert "hunter2" not in problem.message


def test_a_key_of_another_type_says_what_to_do() -> None:
    (problem,) = load(f"{HEAD}{ENTRY}url = 'x'\n").problems

    assert "`url`" in problem.message
    assert problem.message.endswith("remove it")


def test_what_is_wrong_with_a_manifest_stands_at_its_name() -> None:
    said = ((Severity.WARNING, "bad-tool", "`x` has no schema"), (Severity.ERROR, "bad-manifest", "it is no JSON"))
    loaded = load(HEAD + ENTRY, known=_known(calendar=CatalogFacts((), said)))

    assert loaded.policy is None
    assert [(p.severity, p.code, p.message, str(p.place)) for p in loaded.problems] == [
        (*finding, "policy.toml:5:12") for finding in said
    ]


def test_a_manifest_with_warnings_alone_loads() -> None:
    said = ((Severity.WARNING, "bad-tool", "`x` has no schema"),)

    assert load(HEAD + ENTRY, known=_known(calendar=CatalogFacts((), said))).policy is not None


def test_a_tool_of_the_program_itself_wins_over_the_same_one_of_a_catalog() -> None:
    """`block` of the program has the operation `info`, that of the catalog none."""
    rule = "[[agents.a.tool_rules]]\ntool_name = 'block'\nrule_type = { AllowedOperations = ['info'] }\n"

    text = f"{HEAD}{ENTRY}[agents.a]\ntools = ['block']\n{rule}"

    assert not load(text, known=_known(calendar=CatalogFacts(_facts("block")))).problems


def test_another_major_of_a_tool_of_the_program_stands_beside_it() -> None:
    known = _known(calendar=CatalogFacts(_facts("block", version="2.0.0")))

    assert not load(
        f"{HEAD}{ENTRY}[agents.a]\ntools = ['block@2']\n[agents.b]\ntools = ['block@1']\n", known=known
    ).problems


def test_a_manifest_is_read_once_and_only_for_an_entry_that_is_whole() -> None:
    asked: list[Catalog] = []

    def catalogs(catalogs: tuple[Catalog, ...]) -> tuple[CatalogFacts, ...]:
        asked.extend(catalogs)
        return (CatalogFacts(),) * len(catalogs)

    other = "[[catalogs]]\nid = 'x'\ntype = 'http'\nmanifest = 'x.json'\n"
    absolute = "[[catalogs]]\nid = 'y'\ntype = 'host'\nmanifest = '~/y'\n"
    load(f"{HEAD}{ENTRY}{other}{absolute}", known=KnownTools(FACTS, catalogs=catalogs))

    assert asked == [Catalog("cal", CatalogType.HOST, "calendar.json")]


def test_where_nobody_reads_manifests_catalogs_are_not_supported() -> None:
    (problem,) = load(f"{HEAD}[[catalogs]]\nid = 'git'\n", known=BARE).problems

    assert (problem.code, str(problem.place)) == ("not-supported", "policy.toml:2:1")


def test_a_catalog_is_no_key_of_a_file_in_patterns_shape() -> None:
    rule = "[[tool_rules]]\ntool_name = 'calc'\nrule_type = 'ExitLoop'\n"

    assert [problem.code for problem in load(f"tools = ['calc']\n{rule}{ENTRY}").problems] == ["unknown-key"]


def test_the_address_of_a_catalog_leads_to_its_entry() -> None:
    text = f"{HEAD}{ENTRY.replace('calendar', 'other').replace('cal', 'first', 1)}{ENTRY}"
    places = load(text).places

    assert str(places.place(("catalogs", "cal"))) == "policy.toml:6:1"
    assert str(places.place(("catalogs", "cal", "manifest"))) == "policy.toml:9:1"
