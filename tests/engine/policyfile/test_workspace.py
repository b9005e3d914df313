"""``[workspace]``: its keys are read, kept in place and written."""

from dataclasses import replace

import pytest

from gatewright.base.errors import NotSupported, Severity
from gatewright.policy.document import (
    MemoryWeights,
    Policy,
    Questions,
    Roots,
    SearchEngine,
    SearchProvider,
    ShellBackend,
    ShellSettings,
    Web,
)
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.verdict import AgentEndpoint, BlueskyEndpoint, DiscordEndpoint, Endpoints, SafetyTier
from gatewright.policyfile import KnownTools, parse_policy, patch_text, render_policy
from gatewright.policyfile.names import Rooted
from gatewright.policyfile.render import render_pattern
from gatewright.workspace.attachment import tools_on_roots as every_rooted
from tests.engine.policyfile.catalog import FACTS, load, policy_of

HEAD = "gatewright = 1\n"
TEXT = """\
gatewright = 1   # version

[workspace]
# where notes are
roots = { shared = 'notes',  vault = "kept" } # care

[agents.a]
tools = []
"""


def test_roots_are_read_inline_and_as_a_table() -> None:
    wanted = Roots("notes", None, "kept")
    assert policy_of(TEXT).roots == wanted
    assert policy_of(f'{HEAD}[workspace.roots]\nvault = "kept"\nshared = "notes"\n').roots == wanted
    assert policy_of(f"{HEAD}[workspace]\n").roots == policy_of(HEAD).roots == Roots()
    assert list(wanted.folders.items()) == [("shared", "notes"), ("vault", "kept")]


SHELL = """\
gatewright = 1

[workspace]
shell = { backend = "host", allow = ["ls", "find -exec", "LC_ALL=", "*"] } # care

[agents.a]
tools = []
"""


def test_the_shell_is_read_kept_in_place_and_written() -> None:
    policy = policy_of(SHELL)
    wanted = ShellSettings(ShellBackend.HOST, ("ls", "find -exec", "LC_ALL=", "*"))
    assert policy.shell == wanted
    assert policy.provides == {"shell"}
    assert policy_of(HEAD).shell == ShellSettings()
    assert policy_of(render_policy(policy)) == policy
    changed = replace(policy, shell=replace(wanted, backend=ShellBackend.SESSION, deny=("rm",)))
    text = patch_text(SHELL, policy, changed)
    assert "# care" in text
    assert policy_of(text) == changed
    bare = replace(policy, shell=ShellSettings())
    assert policy_of(patch_text(SHELL, policy, bare)) == bare
    assert policy_of(patch_text(HEAD, policy_of(HEAD), replace(policy_of(HEAD), shell=wanted))).shell == wanted


FAULTS = [
    ("[workspace]\nendpoints = { mail = {} }\n", ["unknown-key"], "`endpoints` of `[workspace]`"),
    ("[workspace]\nweb = true\n", ["wrong-type"], "must be a table"),
    ("[workspace]\nweb = { allow_privat = true }\n", ["unknown-key"], "unknown key `allow_privat`"),
    ("[workspace]\nweb = { allow_private = 1 }\n", ["wrong-type"], "true or false"),
    ("[workspace]\nweb = { search = [] }\n", ["bad-value"], "one to 10"),
    ("[workspace]\nweb = { search = ['bing'] }\n", ["unknown-variant"], "`searxng`"),
    ("[workspace]\nweb = { search = [1] }\n", ["wrong-type"], "text or a table"),
    ("[workspace]\nweb = { search = [{ url = 'https://x.org' }] }\n", ["missing-key"], "needs `engine`"),
    ("[workspace]\nweb = { search = ['searxng'] }\n", ["missing-key"], "needs `url`"),
    ("[workspace]\nweb = { search = ['google'] }\n", ["missing-key"], "needs `api_key_env`"),
    (
        "[workspace]\nweb = { search = [{ engine = 'google', api_key_env = 'AIza-1', engine_id_env = 'CX' }] }\n",
        ["bad-value"],
        "name of the environment variable",
    ),
    (
        "[workspace]\nweb = { search = [{ engine = 'searxng', url = 'http://u:p@x.org' }] }\n",
        ["bad-value"],
        "address of a search engine",
    ),
    ("[workspace]\nshell = { backend = 'wasm' }\n", ["unknown-variant"], "wasm"),
    ("[workspace]\nshell = { allowed = [] }\n", ["unknown-key"], "`allowed`"),
    ("[workspace]\nshell = { allow = 'ls' }\n", ["wrong-type"], "must be a list"),
    ("[workspace]\nshell = { allow = ['l*', 'npm run test*'] }\n", ["bad-value"] * 2, "whole words count, as in `"),
    ("[workspace]\nshell = { ask = ['a;b', '$x', 'cd a && b'] }\n", ["bad-value"] * 3, "and an entry is one command"),
    ("[workspace]\nshell = { deny = ['(ls)', '~/x', '#'] }\n", ["bad-value"] * 3, "neither the name of a program"),
    ("[workspace]\nshell = { deny = ['timeout 5 rm'] }\n", ["bad-value"], "name the command behind it"),
    ("[workspace]\nshell = { deny = ['npm publish $'] }\n", ["bad-value"], "leave out ` $`"),
    ("[workspace]\nshell = { allow = ['CI=1 npm test'] }\n", ["bad-value"], "sets a variable first"),
    ("[workspace]\nshell = { allow = ['git  log', 'git log'] }\n", ["duplicate"], "stands here already"),
    ("[workspace]\nshell = { ask = ['CI='] }\n", ["bad-value"], "a variable is allowed or denied"),
    ("[workspace]\nshell = { allow = ['git * main', 'ls ~/x', 'ls {a,b}'] }\n", ["bad-value"] * 3, "a pattern"),
    ("[workspace]\nrots = {}\n", ["unknown-key"], "unknown key `rots`"),
    ("[workspace]\nroots = { share = 'x' }\n", ["unknown-key"], "unknown key `share`"),
    ("[workspace]\nroots = 'x'\n", ["wrong-type"], "must be a table"),
    ("[workspace]\nroots = { tmp = 1 }\n", ["wrong-type"], "must be text"),
    ("[workspace]\nroots = { tmp = ' ' }\n", ["bad-value"], "may not be blank"),
    ("[workspace]\nroots = { shared = 'x', tmp = './x/' }\n", ["roots-overlap"], "`shared` and `tmp`"),
    ("[workspace]\nroots = { shared = '.', vault = 'a/../b' }\n", ["roots-overlap"], "`shared` and `vault`"),
    ("[workspace]\nroots = { shared = '/a', tmp = '/a/b', vault = '/' }\n", ["roots-overlap"] * 2, "`vault`"),
]


def test_an_entry_that_a_denial_covers_is_told() -> None:
    shell = "deny = ['git push', 'rm'], ask = ['rm'], allow = ['git', 'git push --dry-run', 'git pull', 'RM $']"
    loaded = load(f"{HEAD}[workspace]\nshell = {{ {shell} }}\n")
    found = [(problem.code, problem.message) for problem in loaded.problems if problem.code == "never-allowed"]
    assert loaded.policy is not None
    named = [message.partition(" never counts: ")[0] for _, message in found]
    assert named == ["`rm`", "`git push --dry-run`", "`RM $`"]
    assert found[1][1].endswith("`deny` names `git push`")


@pytest.mark.parametrize(("body", "codes", "words"), FAULTS)
def test_a_fault_of_the_table_is_named(body: str, codes: list[str], words: str) -> None:
    loaded = load(HEAD + body)
    assert loaded.policy is None
    assert [problem.code for problem in loaded.problems] == codes
    assert any(words in problem.message for problem in loaded.problems)


@pytest.mark.parametrize("folder", ["ab", "../a", "a-b", "/a"])
def test_folders_that_only_look_alike_do_not_overlap(folder: str) -> None:
    assert policy_of(f"{HEAD}[workspace]\nroots = {{ shared = 'a', tmp = '{folder}' }}\n").roots.tmp == folder


@pytest.mark.parametrize(
    ("roots", "line"),
    [
        (Roots("notes", None, "safe"), "roots = { shared = 'notes',  vault = \"safe\" } # care"),
        (Roots("notes", "t", "kept"), 'roots = { shared = \'notes\',  vault = "kept", tmp = "t" } # care'),
        (Roots("notes"), "roots = { shared = 'notes' } # care"),
    ],
)
def test_a_change_touches_its_own_words_only(roots: Roots, line: str) -> None:
    before = policy_of(TEXT)
    after = replace(before, roots=roots)
    assert patch_text(TEXT, before, after) == TEXT.replace(
        "roots = { shared = 'notes',  vault = \"kept\" } # care", line
    )


@pytest.mark.parametrize("text", [TEXT, HEAD, f'{HEAD}[workspace.roots]\ntmp = "t"\n', f"{HEAD}workspace = {{ }}\n"])
@pytest.mark.parametrize("roots", [Roots(), Roots("a"), Roots("a", "b", "c"), Roots(None, "t", "kept")])
def test_every_change_of_the_roots_can_be_written_and_read_back(text: str, roots: Roots) -> None:
    before = policy_of(text)
    after = replace(before, roots=roots)
    assert policy_of(patch_text(text, before, after)) == after
    assert policy_of(render_policy(after)) == after


def test_a_pattern_file_holds_no_roots() -> None:
    text = 'name = "a"\ntools = ["file"]\n[[tool_rules]]\ntool_name = "file"\nrule_type = { type = "ContinueLoop" }\n'
    before = policy_of(text)
    with pytest.raises(NotSupported, match="roots"):
        patch_text(text, before, replace(before, roots=Roots("a")))
    ours = policy_of(f'{HEAD}[workspace]\nroots = {{ shared = "a" }}\n[agents.a]\ntools = ["calc"]\n')
    assert "the root shared" in render_pattern(ours, "a")


def rooted(*more: ToolFacts) -> KnownTools:
    plain = (OperationFacts("", SafetyTier.READ_ONLY, parameters=("path",), required=("path",)),)
    facts = (ToolFacts("file_read", 1, plain, SafetyTier.READ_ONLY), ToolFacts("copy", 1, plain, SafetyTier.READ_ONLY))
    needs = ((("shared", "tmp"),), (("vault",), ("shared", "tmp")))
    return KnownTools((*FACTS, *more), rooted=tuple(map(Rooted, facts, needs)))


def read(text: str, known: KnownTools) -> tuple[Policy | None, list[tuple[str, str, str]]]:
    loaded = parse_policy(HEAD + text, file="policy.toml", known=known)
    return loaded.policy, [(str(problem.severity), problem.code, problem.message) for problem in loaded.problems]


def test_a_tool_whose_root_is_not_named_is_a_warning_where_an_agent_has_it() -> None:
    agent = "[agents.a]\ntools = ['file_read', 'copy']\n"
    policy, problems = read(agent, rooted())
    assert policy is not None
    assert [code for _, code, _ in problems] == ["no-root", "no-root"]
    assert {severity for severity, _, _ in problems} == {str(Severity.WARNING)}
    _, problems = read(f"[workspace]\nroots = {{ tmp = 't' }}\n{agent}", rooted())
    assert [message.count("`vault`") for _, _, message in problems] == [1]
    assert read(f"[workspace]\nroots = {{ tmp = 't', vault = 'v' }}\n{agent}", rooted())[1] == []


def test_a_tool_of_somebody_else_with_the_name_needs_no_root() -> None:
    own = ToolFacts("file_read", 1, (OperationFacts("", SafetyTier.PRIVILEGED),), SafetyTier.PRIVILEGED, "own")
    assert read("[agents.a]\ntools = ['file_read']\n", rooted(own))[1] == []


def test_policy_rules_are_held_against_the_tools_that_are_there() -> None:
    rule = '[[policy.rules]]\nname = "x"\neffect = "deny"\nwhen = { properties = { path = { type = "null" } } }\n'
    without, _ = read(rule, rooted()), None
    there = read(f"[workspace]\nroots = {{ shared = 's' }}\n{rule}", rooted())
    assert "file_read" not in str(without[1])
    assert (there[0] is None, without[0] is None) == (False, False)


WEB = """\
gatewright = 1

[workspace]
roots = { tmp = "t" }
# who searches
web = { search = ["duckduckgo", { engine = "searxng", url = "http://localhost:8888" }], allow_private = true } # ours

[agents.a]
tools = []
"""
ENGINES = (SearchProvider(SearchEngine.DUCKDUCKGO), SearchProvider(SearchEngine.SEARXNG, "http://localhost:8888"))
GOOGLE = SearchProvider(SearchEngine.GOOGLE, None, "KEY", "CX")


def test_web_is_read_and_without_it_nothing_private_is_reached() -> None:
    assert policy_of(WEB).web == Web(allow_private=True, search=ENGINES)
    assert policy_of(HEAD).web == policy_of(f"{HEAD}[workspace.web]\n").web == Web()
    assert Web() == Web(allow_private=False, search=(SearchProvider(SearchEngine.DUCKDUCKGO),))
    entry = '[[workspace.web.search]]\nengine = "google"\napi_key_env = "KEY"\nengine_id_env = "CX"\n'
    assert policy_of(HEAD + entry).web.search == (GOOGLE,)


@pytest.mark.parametrize("web", [Web(), Web(allow_private=True), Web(search=(GOOGLE, *ENGINES))])
def test_a_changed_web_is_patched_and_rendered_to_the_same_policy(web: Web) -> None:
    before = policy_of(WEB)
    after = replace(before, web=web)
    text = patch_text(WEB, before, after)
    assert policy_of(text) == after == policy_of(render_policy(after))
    assert text.startswith('gatewright = 1\n\n[workspace]\nroots = { tmp = "t" }\n')
    bare = policy_of(HEAD)
    assert policy_of(patch_text(HEAD, bare, replace(bare, web=web))).web == web


ENDPOINTS = f"""{HEAD}
[agents.a]
tools = []

[agents.b]
tools = []

[workspace.endpoints]
user = {{}}
agent = {{ agents = ["b"] }} # b alone
group = {{ crew = ["a", "b"] }}
discord = {{ token_env = "BOT", channels = ["1", "2"] }}
bluesky = {{ handle = "bot.example.com", password_env = "APP", url = "https://pds.example.com" }}
"""
EVERY_ENDPOINT = Endpoints(
    user=True,
    agent=AgentEndpoint(("b",)),
    groups={"crew": ("a", "b")},
    discord=DiscordEndpoint("BOT", ("1", "2")),
    bluesky=BlueskyEndpoint("bot.example.com", "APP", url="https://pds.example.com"),
)


def test_endpoints_are_read_and_without_them_there_are_none() -> None:
    assert policy_of(ENDPOINTS).endpoints == EVERY_ENDPOINT
    assert policy_of(HEAD).endpoints == policy_of(f"{HEAD}[workspace.endpoints]\n").endpoints == Endpoints()
    assert policy_of(f"{HEAD}[workspace.endpoints]\nagent = {{}}\n").endpoints.agent == AgentEndpoint()


@pytest.mark.parametrize("endpoints", [Endpoints(), Endpoints(user=True, agent=AgentEndpoint()), EVERY_ENDPOINT])
def test_changed_endpoints_are_patched_and_rendered_to_the_same_policy(endpoints: Endpoints) -> None:
    for text in (ENDPOINTS, HEAD + "[agents.a]\ntools = []\n[agents.b]\ntools = []\n"):
        before = policy_of(text)
        after = replace(before, endpoints=endpoints)
        assert policy_of(patch_text(text, before, after)) == after == policy_of(render_policy(after))


@pytest.mark.parametrize(
    ("written", "weights"),
    [
        ("vector = 0.5, text = 0.5", MemoryWeights(0.5, 0.5)),
        ("vector = 1", MemoryWeights(1.0, 0.0)),
        ("text = 0.8", MemoryWeights(0.2, 0.8)),
        ("", MemoryWeights()),
    ],
)
def test_weights_of_memory_are_read_patched_and_rendered(written: str, weights: MemoryWeights) -> None:
    text = f"{HEAD}[workspace]\nmemory = {{ {written} }} # ranking\n"
    before = policy_of(text)
    assert before.memory == weights
    for memory in (MemoryWeights(), MemoryWeights(0.1, 0.9), weights):
        after = replace(before, memory=memory)
        assert policy_of(patch_text(text, before, after)) == after == policy_of(render_policy(after))


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("vector = 0.7, text = 0.7", "bad-value"),
        ("vector = 2", "bad-value"),
        ("text = -0.1", "bad-value"),
        ('vector = "much"', "wrong-type"),
        ("text = true", "wrong-type"),
        ("meaning = 0.5", "unknown-key"),
    ],
)
def test_weights_of_memory_that_are_none_are_an_error_at_their_place(written: str, code: str) -> None:
    (problem,) = load(f"{HEAD}[workspace]\nmemory = {{ {written} }}\n").problems
    assert (problem.code, problem.severity) == (code, Severity.ERROR)


@pytest.mark.parametrize(
    "base", ["https://gate.example.org/answers", "http://127.0.0.1:8080", "http://localhost/a", "http://[::1]:80/"]
)
def test_who_answers_by_links_is_read_patched_and_rendered(base: str) -> None:
    who = ("mailto:ann@example.org", "slack:OPS_WEBHOOK")
    text = f'{HEAD}[workspace]\nquestions = {{ wait = "2h", answer_by = {[*who]}, link_base = "{base}" }} # who\n'
    before = policy_of(text)
    assert before.questions == Questions(7_200.0, answer_by=who, link_base=base)
    for questions in (Questions(), Questions(answer_by=who[:1], link_base=base), before.questions):
        for written in (text, f"{HEAD}[agents.a]\ntools = []\n"):
            after = replace(policy_of(written), questions=questions)
            assert policy_of(patch_text(written, policy_of(written), after)) == after
            assert policy_of(render_policy(after)) == after


@pytest.mark.parametrize(
    "address",
    [
        "ann@example.org",
        "mailto:",
        "mailto:ann",
        "mailto:ann@",
        "mailto:@example.org",
        "mailto:ann@example.org?cc=eve@example.org",
        "mailto:ann@example.org,eve@example.org",
        "mailto:ann@example.org\\nBcc: eve@example.org",
        "mailto:Ann <ann@example.org>",
        "MAILTO:ann@example.org",
        "slack:",
        "slack:#ops",
        "slack:https://hooks.slack.com/services/T/B/x",
        "sms:5",
        "",
    ],
)
def test_an_address_that_nobody_can_be_reached_by_is_an_error_at_its_place(address: str) -> None:
    text = f'{HEAD}[workspace]\nquestions = {{ answer_by = ["mailto:a@b.org", "{address}"] }}\n'
    (problem,) = load(text).problems
    assert (problem.code, problem.severity) == ("bad-value", Severity.ERROR)
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (3, 46)


@pytest.mark.parametrize(
    "written",
    [
        'answer_by = ["mailto:a@b.org", "mailto:a@b.org"]',
        f"answer_by = {[f'mailto:a{number}@b.org' for number in range(21)]}",
        'link_base = "http://gate.example.org"',
        'link_base = "http://10.0.0.1/answers"',
        'link_base = "ftp://gate.example.org"',
        'link_base = "https://gate.example.org/?a=1"',
        'link_base = "https://gate.example.org/#a"',
        'link_base = "https://ann:secret@gate.example.org/"',
        'link_base = "gate.example.org"',
    ],
)
def test_links_that_lead_nowhere_or_can_be_read_on_the_way_are_an_error(written: str) -> None:
    (problem,) = load(f"{HEAD}[workspace]\nquestions = {{ {written} }}\n").problems
    assert (problem.code, problem.severity) == ("bad-value", Severity.ERROR)


def test_pattern_s_agent_sends_to_its_user_and_its_shape_says_nothing_else_of_it() -> None:
    text = 'tools = ["send_message"]\n[[tool_rules]]\ntool_name = "send_message"\nrule_type = { type = "ExitLoop" }\n'
    loaded = parse_policy(text, file="a.toml", known=KnownTools(FACTS, rooted=every_rooted()))
    assert loaded.policy is not None, loaded.problems
    assert (loaded.problems, loaded.policy.endpoints) == ((), Endpoints(user=True))
    with pytest.raises(NotSupported, match="endpoints"):
        patch_text(text, loaded.policy, replace(loaded.policy, endpoints=EVERY_ENDPOINT))


def test_pattern_s_shape_has_no_place_for_the_web() -> None:
    before = parse_policy(
        '[[tool_rules]]\ntool_name = "block"\nrule_type = "ContinueLoop"\n', file="a.toml", known=KnownTools(FACTS)
    )
    assert before.policy is not None
    with pytest.raises(NotSupported, match="web"):
        patch_text(before.text, before.policy, replace(before.policy, web=Web(allow_private=True)))
