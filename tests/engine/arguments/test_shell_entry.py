"""Commands by their first words: what the entries of the lists name, and what real bash then starts."""

import shutil
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.arguments.shell import ShellCommand, parse_command
from gatewright.arguments.shell_entry import WRAPPERS, read_entry
from gatewright.arguments.shell_program import ShellRules, names
from gatewright.arguments.shell_word import CommandRefused
from tests.engine.arguments.shellrun import ShellRun

ALLOW = ("ls", "echo", "git status", "git log:*", "npm run test *", "npm run build $", "make check", "./run fast", "A=")
ASK = ("git commit", "npm publish")
DENY = ("rm", "git push", "npm run deploy:*", "git log --output", "ls -R")
RULES = ShellRules(ALLOW, DENY, True, True, ASK)
OPEN = ShellRules(("*", "git", "npm", "make", "bash", "sudo", "find -exec"), DENY, True, True, ASK)


def judged(command: str, rules: ShellRules = RULES) -> ShellCommand | CommandRefused:
    return parse_command(command, rules, lambda target, _: f"/root/{target}")


def code_of(command: str, rules: ShellRules = RULES) -> str:
    found = judged(command, rules)
    return found.code.removeprefix("shell-") if isinstance(found, CommandRefused) else ""


@pytest.mark.parametrize(
    "command",
    [
        "git status", "git status -s src", "git log", "git log --oneline -5", "npm run test", "npm run test --watch",
        "npm run build", "make check -j4", "./run fast x", "ls -l", "git status && git log | ls", "(git status)",
        "timeout 5 git status", "env -i nice -n 5 nohup git log", "time npm run test", "xargs echo", "A=1 git status",
        "env A=1 x=2 git status", "for x in 1 2; do git log; done", "'git' \"status\" # push",
        "git status 2>&1", "git stat''us", "echo git push", "git log push", "command git status", "git log -- ./rm",
        "ls | xargs -I% ls ./%", "git log --grep=push", "git commit -m push", "timeout -k 1 5 git commit",
        "stdbuf -oL ionice -c3 setsid npm run test",
    ],
)  # fmt: skip
def test_what_begins_with_the_words_of_an_entry_may_start(command: str) -> None:
    assert code_of(command) == ""


@pytest.mark.parametrize(
    "command",
    [
        "git", "git stash", "git statuses", "git Status", "GIT status", "/usr/bin/git status", "git -C x status",
        "git --no-pager log", "git -s status", "npm", "npm test", "npm run", "npm run tests", "npm run test:unit",
        "npm run build x", "npm --prefix x run test", "npm run --silent test", "npm 'run test'", "make", "make all",
        "run fast", "./run slow", "git '' status", "git ' status'", "git status; git stash", "git status | id",
        "git status & id", "(git status; id)", "echo $(git stash)", "timeout 5 git stash", "xargs git stash",
        "env", "nice", "timeout 5", "sudo git status", "xargs npm run build", "xargs npm run", "git statu?",
        "x=status; git $x", "git ${x:-status}", "git $(echo status)", "npm run $x", "npm $IFS run test",
        "npm run tes?", "git\nstatus", "git $'sta'tus$x", "./git status",
        "find . -exec git status ';'", "bash -c 'git status'", "eval git status", "git() { ls; }; git status",
        "exec git status", "env PATH=. git status", "LD_PRELOAD=x git status", "timeout -k git status",
        "xargs -I% npm run %", "nice $x git status", "env -S 'git status'", "env -C / git status", "time -o f ls",
        "command -v id", "git status\\ x", "./timeout 5 git status", "/usr/bin/timeout 5 git status",
    ],
)  # fmt: skip
def test_nothing_passes_that_no_entry_names(command: str) -> None:
    assert code_of(command) != ""


SPELLED = [
    "git push", "git  push", "git pu''sh", "'git' \"push\"", "git \\push", "git $'\\x70ush'", "git PUSH", "Git push",
    "/usr/bin/git push", "./git push", "git -C x push", "git -C status push", "git --git-dir=x push", "git -p push x",
    "git -c a=b push", "git {push,}", "git status; git push", "ls | git push", "(git push)", "! git push",
    "cat <(git push)", "if ls; then git push; fi", "ls <(git push)", "x=1 git push", "git push > f", "git push # x",
    "timeout 5 git push", "timeout -k 1 5 nice -n 2 git push", "env x=1 git push", "env -i -u A git push",
    "nohup git push &", "xargs git push", "xargs git", "xargs -I% git % x", "xargs -n 1 git -C x", "time git push",
    "setsid -f git push",
    "stdbuf -oL git push", "command git push", "sudo git push", "sudo -u x git -C y push",
    "bash -c 'git push'", "bash -c \"git pu''sh\"", "bash -c 'cd x && git -C y push'", "bash <<< 'git push'",
    "bash <<E\ngit push\nE", "find . -exec git push ';'", "find . -exec nice git push +",
    "for x in a; do git push; done",
    "npm run deploy", "npm run deploy:prod", "npm --prefix x run deploy", "npm run -s deploy", "npm -w a run -s deploy",
    "git log --output=x", "git log -p --output x", "git log --outp=x", "git log x --OUTPUT y", "ls -lR", "ls -l -aR x",
    "RM x", "/bin/rm x", "nice rm x", "xargs rm", "git status && rm x", "/usr/bin/env git push", "./timeout 5 git push",
]  # fmt: skip


@pytest.mark.parametrize("command", SPELLED)
def test_nothing_that_is_denied_slips_through(command: str) -> None:
    assert code_of(command, OPEN) != ""
    assert code_of(command, ShellRules(OPEN.allow, (), True, True)) in {
        "", "option", "wrapper", "dynamic-option", "not-allowed",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["$HOME", '"$HOME"', "${A:-a}", "$(ls)", "p*", "p?sh", "*", "[p]ush", '"$@"', "pu$1"])
@pytest.mark.parametrize("before", ["", "-C d ", "--git-dir ", "--x=y "])
def test_a_word_that_is_not_written_out_may_be_each_denied_one(word: str, before: str) -> None:
    assert code_of(f"git {before}{word}", OPEN) != ""
    assert code_of(f"make {before}{word}", ShellRules(("make",), ("make push",), True)) != ""


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("git commit -m x", ["git commit"]),
        ("git -C x commit; npm publish", ["git commit", "npm publish"]),
        ("timeout 5 git commit", ["git commit"]),
        ("sudo git commit", ["git commit"]),
        ("bash -c 'npm publish'", ["npm publish"]),
        ("git status; npm test", []),
    ],
)
def test_an_entry_of_ask_asks_wherever_it_may_stand(command: str, asks: list[str]) -> None:
    found = judged(command, OPEN)
    assert isinstance(found, ShellCommand)
    assert [part.entry for part in found.parts if part.asks] == asks
    assert all(part.at == ("workspace", "shell", "ask", ASK.index(part.entry)) for part in found.parts if part.asks)


def test_deny_beats_ask_and_ask_permits_what_allow_leaves_out() -> None:
    both = ShellRules(("git",), ("git push",), ask=("git push", "npm publish"))
    assert (code_of("git push", both), code_of("npm publish", both), code_of("npm -s publish", both)) == (
        "denied",
        "",
        "not-allowed",
    )


def test_each_part_says_by_which_entry_and_a_refusal_says_what_there_is() -> None:
    found = judged("git status -s && timeout 5 npm run test | ls")
    assert isinstance(found, ShellCommand)
    assert [(part.text, part.entry, part.at[-1]) for part in found.parts] == [
        ("git status -s", "git status", 2),
        ("npm run test", "npm run test *", 4),
        ("ls", "ls", 0),
    ]
    refused = judged("npm --prefix x run test")
    assert isinstance(refused, CommandRefused)
    assert "there is `npm run test`, `npm run build` alone" in refused.hint
    denied = judged("git -C x push")
    assert isinstance(denied, CommandRefused)
    assert denied.at == ("workspace", "shell", "deny", 1)
    assert "push" not in denied.hint


@pytest.mark.parametrize("wrapper", sorted(WRAPPERS))
def test_wrappers_in_great_number_are_refused_and_not_followed(wrapper: str) -> None:
    operand = " 5" * WRAPPERS[wrapper].operands
    assert code_of(f"{wrapper}{operand} " * 9 + "echo") == ""
    assert code_of(f"{wrapper}{operand} " * 900 + "echo") == "too-deep"


@pytest.mark.parametrize("text", ["git status", "git  status:*", "git status *", "git commit -m 'a b'", "./x y=1 @z"])
def test_an_entry_names_a_program_and_its_words(text: str) -> None:
    assert read_entry(text).words
    assert "*" not in read_entry(text).words[-1]


_WORDS = st.sampled_from(sorted(names("git status log push commit npm run test deploy -C -s --x=y -- a ls rm echo")))
_CALL = st.tuples(st.sampled_from(["git", "npm", "ls", "rm", "echo"]), st.lists(_WORDS, max_size=4)).map(
    lambda drawn: [drawn[0], *drawn[1]]
)
_QUOTES = st.sampled_from(["{0}", "'{0}'", '"{0}"', "{1}''{2}", "\\{0}", "$'{0}'", '{1}"{2}"'])
_FRONT = st.sampled_from(
    ["", "", "timeout 5 ", "nice -n 1 ", "env x=1 ", "nohup ", "env -i nice ", "x=1 ", "command ", "setsid -w "]
)
_JOINS = st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & "])


class Chain(NamedTuple):
    """A command, with the calls that it is made of."""

    text: str
    calls: list[list[str]]


@st.composite
def chains(draw: st.DrawFn, *, plain: bool = False) -> Chain:
    calls = draw(st.lists(_CALL, min_size=1, max_size=3))
    parts: list[str] = []
    for call in calls:
        spelled = [word if plain else draw(_QUOTES).format(word, word[:1], word[1:]) for word in call]
        parts.append(draw(_FRONT) + " ".join(spelled))
    wrap = draw(st.sampled_from(["{0}", "({0})", "{{ {0}; }}", "if {0}; then {0}; fi", "! {0}"]))
    return Chain(wrap.format(draw(_JOINS).join(parts).rstrip("& ")), calls)


def is_named(call: list[str], entries: tuple[str, ...]) -> bool:
    """Our own reading of the lists: the words of an entry, then anything; a `$` ends them."""
    for text in entries:
        words = text.removesuffix(":*").removesuffix(" *").split()
        if words[-1] == "$":
            if call == words[:-1]:
                return True
        elif call[: len(words)] == words:
            return True
    return False


def is_forbidden(call: list[str]) -> bool:
    """The sub-command that git or npm would act on, in whatever way their options take values."""
    readings = [[word for word in call if not word.startswith("-")]]
    readings.append([w for before, w in zip(["", *call], call, strict=False) if w[0] != "-" and before not in {"-C"}])
    return any(is_named(one, ("rm", "git push", "npm run deploy")) for one in readings)


@settings(max_examples=500, deadline=None)
@given(chains())
def test_a_chain_passes_only_if_an_entry_names_each_of_its_calls(chain: Chain) -> None:
    found = judged(chain.text)
    if isinstance(found, ShellCommand):
        assert all(is_named(call, ALLOW + ASK) for call in chain.calls), found.text
        assert not any(map(is_forbidden, chain.calls)), found.text
        asking = {part.entry for part in found.parts if part.asks}
        assert asking >= {entry for entry in ASK for call in chain.calls if is_named(call, (entry,))}


@settings(max_examples=500, deadline=None)
@given(chains(plain=True))
def test_a_chain_of_calls_that_are_all_named_passes(chain: Chain) -> None:
    rules = ShellRules(ALLOW, ("rm",), True, True, ASK)
    if all(is_named(call, ALLOW + ASK) for call in chain.calls) and "\n" not in chain.text:
        assert code_of(chain.text, rules) == "", chain.text


@settings(max_examples=300, deadline=None)
@given(chains())
def test_no_chain_with_a_denied_call_passes_whatever_is_allowed(chain: Chain) -> None:
    if any(map(is_forbidden, chain.calls)):
        assert code_of(chain.text, OPEN) != "", chain.text


_RECORDER = '#!/bin/sh\n{ printf "%s " "${0##*/}" "$@"; echo; } >>"$GATEWRIGHT_LOG"\necho status push\nexit 0\n'
_SCRAPS = [
    *(f"{word} " for word in ("git", "status", "log", "push", "npm", "run", "test", "deploy", "ls", "echo")),
    *("timeout 5 ", "nice ", "env ", "env x=1 ", "xargs ", "xargs -I% ", "% ", "time ", "nohup ", "-C d ", "-- "),
    *("; ", " && ", " | ", "\n", "& ", "( ", ") ", "$x ", '"$x" ', "x=push ", "x=status; ", "$(", "`", "*", "{push,}"),
    *("'", '"', "\\", "#", "for x in push status; do ", "done ", "if ", "then ", "fi ", "<<< push ", "$IFS", "st?tus "),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ShellRun:
    made = ShellRun(tmp_path_factory.mktemp("entries"), _RECORDER)
    for name in (*WRAPPERS, "npm", "push", "status"):
        (made.programs / name).unlink(missing_ok=True)
        real = shutil.which(name) if name in WRAPPERS else None
        if real:
            (made.programs / name).symlink_to(real)
        elif name not in WRAPPERS:
            shutil.copy(made.programs / "git", made.programs / name)
    (made.folder / "status").touch()
    (made.folder / "push").touch()
    return made


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_SCRAPS), min_size=1, max_size=9).map("".join), st.sampled_from(["", "git status; "]))
def test_real_bash_starts_nothing_that_no_entry_names(run: ShellRun, text: str, before: str) -> None:
    found = parse_command(before + text, RULES, run.locate)
    if isinstance(found, ShellCommand):
        for line in run.started(found.text, 3.0)[0] and run.log.read_text().splitlines():
            call = line.split()
            assert is_named(call, ALLOW + ASK), (before + text, found.text, line)
            assert not is_forbidden(call), (before + text, found.text, line)


def test_bash_starts_what_was_judged_behind_each_wrapper(run: ShellRun) -> None:
    for wrapper in WRAPPERS:
        if wrapper in {"command", "time"} or (run.programs / wrapper).exists():
            options = {"timeout": " 5", "stdbuf": " -oL", "xargs": " -n 1"}.get(wrapper, "")
            found = judged(f"{wrapper}{options} git status -s --")
            assert isinstance(found, ShellCommand)
            started = run.started(found.text)[0]
            assert started == ["git", "status", "-s", "--"] or wrapper == "time", wrapper
