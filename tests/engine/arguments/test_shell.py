"""Shell commands: every program found and judged, and what is executed written anew from what was judged."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.arguments.shell import MAX_COMMAND_BYTES, MAX_SIGNS, ShellCommand, ShellRules, parse_command
from gatewright.arguments.shell_entry import WRAPPERS
from gatewright.arguments.shell_program import names
from gatewright.arguments.shell_word import CommandRefused
from tests.engine.arguments.shellrun import PROGRAMS, ShellRun, accepted
from tests.support.patience import in_time

BASICS = names("ls cat echo cd read true export unset find git tar sed grep sort f") | {"["}
STARTED = BASICS | WRAPPERS.keys()
RULES = ShellRules(BASICS)
WITH_SUBSTITUTION = ShellRules(BASICS, allow_substitution=True)
EVERYTHING = ShellRules(frozenset({"*"}))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ShellRun:
    return ShellRun(tmp_path_factory.mktemp("shell"))


def code_of(command: str, rules: ShellRules = RULES) -> str:
    found = parse_command(command, rules, lambda target, _: f"/root/{target}")
    return found.code if isinstance(found, CommandRefused) else ""


@pytest.mark.parametrize(
    "command",
    [
        "ls; id",
        "ls && id",
        "ls || id",
        "ls | id",
        "ls |& id",
        "ls & id",
        "ls\nid",
        "(id)",
        "{ id; }",
        "! id",
        "if ls; then id; fi",
        "if id; then ls; fi",
        "if ls; then ls; elif id; then ls; fi",
        "if ls; then ls; else id; fi",
        "while id; do ls; done",
        "until ls; do id; done",
        "for x in a; do id; done",
        "case a in a) id;; esac",
        "f() { id; }",
        "cat <<EOF | id\nx\nEOF",
        "cat <<EOF\nx\nEOF\nid",
        "i''d",
        "\\id",
        '"id"',
        "x=1 id",
        "> f id",
        "id > f",
        "/bin/ls",
        "./ls",
        "../ls",
    ],
)
def test_a_program_that_is_not_allowed_is_found_wherever_it_stands(command: str) -> None:
    assert code_of(command) == "shell-not-allowed"


@pytest.mark.parametrize("command", ['echo "`id`"', 'echo "$(id)"', "cat <(id)", "cat <<EOF\n$(id)\nEOF"])
def test_a_substitution_is_refused_and_where_it_is_allowed_its_commands_are_judged(command: str) -> None:
    assert code_of(command) == "shell-substitution"
    assert code_of(command, WITH_SUBSTITUTION) == "shell-not-allowed"
    assert code_of(command.replace("id", "ls"), WITH_SUBSTITUTION) == ""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("$x", "dynamic-name"),
        ('"$x"', "dynamic-name"),
        ("l*", "dynamic-name"),
        ("{ls,-l}", "syntax"),
        ("~/ls", "dynamic-name"),
        ("$'ls'", "dynamic-name"),
        ("$(ls)", "substitution"),
        ("PATH=/tmp ls", "variable"),
        ("LD_PRELOAD=x ls", "variable"),
        ("IFS=x", "variable"),
        ("export PATH=/tmp", "variable"),
        ("unset PATH", "variable"),
        ("for PATH in a; do ls; done", "variable"),
        ("read PATH", "option"),
        ("read 'a[$(id)]'", "option"),
        ("echo $((x))", "expansion"),
        ("echo $((a[$(id)]))", "expansion"),
        ("echo ${!x}", "expansion"),
        ("echo ${x@P}", "expansion"),
        ("echo ${x:y}", "expansion"),
        ("echo ${a[$(id)]}", "expansion"),
        ("((x))", "construct"),
        ("[[ -v x ]]", "construct"),
        ("a=(1 2)", "construct"),
        ("for ((;;)); do ls; done", "construct"),
        ("select x in a; do ls; done", "construct"),
        ("g() { ls; }", "function"),
        ("echo > $x", "redirect"),
        ("echo > *", "redirect"),
        ("echo 3> f", "redirect"),
        ("cd a && echo > b", "redirect"),
        ("find . -exec id ';'", "option"),
        ("find . -name x -okdir id ';'", "option"),
        ("find . $x", "dynamic-option"),
        ("git -c alias.x=!id x", "option"),
        ("git --exec-path=/tmp status", "option"),
        ("git -C x config alias.y !id", "option"),
        ("git clone -u id x", "option"),
        ("git grep -Oid x", "option"),
        ("git merge-index id -a", "option"),
        ("git -C x merge-index -o id -a", "option"),
        ("git submodule--helper foreach id", "option"),
        ("git web--browse -t id x", "option"),
        ("git credential fill", "option"),
        ("tar cf x --checkpoint=1 --checkpoint-action=exec=id .", "option"),
        ("tar xf x --to-com id", "option"),
        ("tar xIf id x", "option"),
        ("tar cf x *", "dynamic-option"),
        ("sort --compress-prog=id x", "option"),
        ("sed '1e id' x", "option"),
        ("sed s/a/id/e x", "option"),
        ("sed -n -f script x", "option"),
        ("sed 'w x' y", "option"),
        ("ls \x00", "control"),
        ("", "empty"),
        ("# nothing", "empty"),
        ("ls (", "syntax"),
        ("ls ;;", "construct"),
        ("cat <2>ls", "syntax"),
        ("ls '", "syntax"),
        ("ls; ((", "syntax"),
        ("ls a\\\nb", "syntax"),
        ("ls " * MAX_COMMAND_BYTES, "too-long"),
        ("( " * 100 + "ls" + " )" * 100, "too-deep"),
    ],
)
def test_what_is_known_only_when_it_runs_or_changes_what_is_run_is_refused(command: str, code: str) -> None:
    assert code_of(command) == f"shell-{code}"


_RUNNERS = (
    "eval ls|source x|. x|exec ls|builtin ls|trap ls EXIT|alias a=b|sudo ls|sh -c ls|bash -c ls|env|command|"
    "python3 -c 1|python3.11 x|perl -e 1|awk 1|gawk 1|vi|"
    "vim.tiny|x86_64-linux-gnu-gcc-12 x|setarch x86_64 ls|prlimit ls|ssh-agent ls|systemd-cat ls|ip netns|"
    "scriptlive x|pamexec ls|not ls|not-14 ls|ctest|sotruss ls|memusage ls|ldd ls|debconf ls|libtool ls|gio open x|"
    "ssh a ls|docker run a|busybox ls|coproc ls|node x|make|enable printf|hash -p /tmp/x"
    " ls|mapfile -C id x"
)


@pytest.mark.parametrize(
    "command",
    _RUNNERS.split("|"),
)
def test_the_star_does_not_stand_for_what_runs_other_programs(command: str) -> None:
    assert code_of(command, EVERYTHING) == "shell-runs-others"
    named = ShellRules(frozenset({"*", command.partition(" ")[0]}))
    assert code_of(command, named) == ""


def test_deny_beats_allow_and_the_star() -> None:
    rules = ShellRules(frozenset({"*", "rm", "/bin/rm"}), frozenset({"rm"}))
    assert [code_of(command, rules) for command in ("ls", "rm x", "/bin/rm x", "RM x", "ls | rm")] == [
        "",
        *["shell-denied"] * 4,
    ]
    assert code_of("ls", ShellRules(frozenset({"ls"}), frozenset({"*"}))) == "shell-denied"


def test_an_option_and_a_variable_may_be_allowed_by_name() -> None:
    rules = ShellRules(frozenset({"find", "find -exec", "LC_ALL=", "ls"}))
    assert code_of("find . -exec ls ';'", rules) == ""
    assert code_of("LC_ALL=C ls", rules) == ""
    assert code_of("LC_NUMERIC=C ls", rules) == "shell-variable"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("ls   -l", "ls -l"),
        ("l''s \\-l", "ls -l"),
        ("ls;cat&echo", "ls; cat & echo"),
        ("echo $x'y'", "echo ${x}y"),
        ('echo "a $x"', "echo 'a '\"${x}\""),
        ('echo "$x  $y ${z}"', """echo "${x}"'  '"${y}"' '"${z}\""""),
        ("echo then; ls", "echo 'then'; ls"),
        ("cat > out", "cat > /root/out"),
        ("cat <<'E'\n$x\nE", "cat <<< '$x'"),
        ("find . -name '*.py'", "find . -name '*.py'"),
        ("if ls\nthen cat\nfi", "if ls; then cat; fi"),
    ],
)
def test_the_canonical_text_says_the_same(command: str, text: str) -> None:
    found = parse_command(command, RULES, lambda target, _: f"/root/{target}")
    assert isinstance(found, ShellCommand), found
    assert found.text == text
    assert parse_command(text, RULES, lambda target, _: target) == found


@pytest.mark.parametrize(
    "command",
    [
        "ls && cat || echo no",
        "echo a b  'c  d' \"e  f\" g\\ h",
        'x="a b"; echo $x "$x" \'$x\' "${x#a}" "${x:-c}"',
        "for x in a 'b c' {1..3} {d,e}; do echo \"<$x>\"; done",
        "case abc in x) echo 1;; a*|b) echo 2;; (*) echo 3; esac",
        "case x in esac",
        "f() { echo in f; }; f; f",
        "cat <<E; echo after\nE",
        "read x <<'E'\nline $y\nE\necho \"$x\"",
        'x=1; read y <<E\nv $x \\$x "q"\nE\necho "$y"',
        "if [ a = b ]; then echo 1; elif [ -n a ]; then echo 2; else echo 3; fi",
        "! true; echo $?",
        "(x=1; echo $x); { x=2; }; echo $x",
        "echo a{b,c}d [x] 'a*' a\\*b $((1 + 2 * 3)) ~root",
        "echo $'a\\tb' end; echo 'it'\\''s' # comment",
        'echo one > o; read x < o; echo "$x"; echo two >> o; { read a; read b; } < o; echo "$a" "$b"',
        "echo err 2>&1 >/dev/null; echo x >&2",
        "while read x; do echo \"[$x]\"; done <<'E'\na\nb c\nE",
        "until true; do echo never; done; echo \\\n  joined",
        "[ ! -f nothing ] && [ a != b ] && echo yes",
        "echo in do then fi; echo x in",
    ],
)
def test_what_is_executed_does_what_was_written(command: str, run: ShellRun) -> None:
    found = accepted(command, WITH_SUBSTITUTION, run.locate)
    if found is None:
        assert "cat <<E;" in command  # the grammar knows no `;` there
        return
    assert run.started(found.text) == run.started(command)


_SIGNS = "$( ${ $(( )) && || |& &> >> <<< >& 2> $x $@ ${x} x= PATH= a[ ] $' \\' {a,b} >f <f"
_NAMES = (
    "ls cat echo id rm sh if then else fi while until do done for x in case esac function time coproc select eval exec "
    "export read set unset [[ ]] (( ! f() f ls ls cat echo"
)
_PARTS = [
    *"$`\"'\\(){}[]|&;<>*?~#!=\n \t.-%1",
    *_SIGNS.split(),
    *(f"{word} " for word in _NAMES.split()),
    *["<<E\n", "\nE\n", "; ", "; }", "{ ", ";;", " ", " ", " ", "\\\n"],
]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_PARTS), max_size=14).map("".join), st.booleans())
def test_bash_starts_nothing_of_a_shell_like_text_but_what_is_allowed(run: ShellRun, text: str, starts: bool) -> None:
    rules = WITH_SUBSTITUTION
    found = accepted(f"ls {text}" if starts else text, rules, run.locate)
    if found is not None:
        assert set(found.programs) <= STARTED  # before it is run
        assert set(run.started(found.text, 3.0)[0]) <= STARTED
        again = parse_command(found.text, rules, lambda target, _: target)
        assert isinstance(again, ShellCommand)
        assert again.text == found.text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_command_or_a_refusal_that_echoes_nothing(text: str) -> None:
    found = parse_command(text, RULES, lambda target, _: target)
    if isinstance(found, CommandRefused):
        assert len(text) < 20 or text not in found.hint
    else:
        assert set(found.programs) <= STARTED


@pytest.mark.parametrize(
    "text",
    ["(", "$(", "`", "|", "<", "if ", "<<a ", "${a:-", "'\"", "ls;", "ls $(ls) ", "\\", "{", "ls|", ")", "a=(", "((a"],
)
def test_hostile_repetition_is_judged_in_time(text: str) -> None:
    began = time.thread_time()  # what others do with the cores meanwhile is no fault of this
    parse_command((text * MAX_COMMAND_BYTES)[:MAX_COMMAND_BYTES], WITH_SUBSTITUTION, lambda target, _: target)
    assert in_time(time.thread_time() - began, 0.3)


@pytest.mark.parametrize("before", ["", "ls; ", "x=1 ", "> f "])
@pytest.mark.parametrize("spell", ["\\\\{0}", "'{0}'", '"{0}"', "{1}''{2}", "$'{0}'", "{1}\\\\{2}"])
@pytest.mark.parametrize("name", ["export", "readonly", "local", "unset", "declare", "typeset"])
def test_no_spelling_of_a_word_that_sets_variables_gets_past_what_may_be_set(
    name: str, spell: str, before: str
) -> None:
    rules = ShellRules(BASICS | {"export", "readonly", "local", "unset", "declare", "typeset"})
    assert code_of(f"{before}{spell.format(name, name[:1], name[1:])} PATH=/evil; ls", rules) != ""
    assert code_of(f"{before}{name} PATH=/evil; ls", rules) != ""


_CALLS = st.lists(
    st.sampled_from(
        [
            *("ls", "ls {1..9}", "ls a{b,c}*", "cat 'a b'", "cat *.py", "x=1", 'cat "$x"', "git status", "ls ~"),
            *(
                "ls {}",
                "find . -exec id",
                "git -c a=b log",
                "sed -n p f",
                "cat $y",
                "cd {a,b}/..",
                "id",
                "ls {1..9}{1..9}",
            ),
        ]
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(_CALLS, st.integers(2, 40))
def test_what_is_said_again_is_judged_as_it_was(calls: list[str], times: int) -> None:
    once = parse_command("; ".join(calls), RULES, lambda target, _: target)
    often = parse_command("; ".join(calls * times), RULES, lambda target, _: target)
    if isinstance(once, ShellCommand):
        assert often == ShellCommand("; ".join([once.text] * times), once.programs, once.words, once.only_reads)
    else:
        assert often == once


def test_braces_that_stand_for_too_much_together_are_refused_though_each_was_read_before() -> None:
    assert code_of("ls {1..999}; " * 40) == ""
    assert code_of("ls {1..999}; " * 60) == "shell-too-many-words"


def test_signs_in_great_number_are_refused_for_that_reason() -> None:
    found = [
        parse_command("ls" + " | ls" * count, RULES, lambda target, _: target) for count in (MAX_SIGNS, MAX_SIGNS + 1)
    ]
    assert isinstance(found[0], ShellCommand)
    assert isinstance(found[1], CommandRefused)
    assert found[1].reason == "the command holds one of the signs | ( < more than 1,000 times"


def test_no_known_payload_reaches_a_program_that_is_not_allowed(corpora: Path, run: ShellRun) -> None:
    rows = json.loads((corpora / "attack_shell_injection.json").read_text("utf-8"))
    passed = 0
    for row in rows:
        for text in (row["payload"], f"ls {row['payload']}", f"ls '{row['payload']}'", f'ls "{row["payload"]}"'):
            found = accepted(text, RULES, run.locate)
            if found is not None:
                passed += 1
                assert set(found.programs) <= BASICS, text  # before it is run
                assert set(run.started(found.text)[0]) <= BASICS, text
    assert passed > 10


def test_harmless_commands_pass_where_their_programs_are_named(corpora: Path) -> None:
    """What is refused says why: a variable in capitals, a substitution, an option that starts something."""
    rows = json.loads((corpora / "benign_shell_commands.json").read_text("utf-8"))
    refused: dict[str, str] = {}
    for row in rows:
        words = frozenset(re.findall(r"[A-Za-z0-9_./@-]+", row["payload"]))
        found = parse_command(row["payload"], ShellRules(words), lambda target, _: target)
        if isinstance(found, CommandRefused):
            refused[row["payload"]] = found.code
    assert set(refused.values()) <= {"shell-variable", "shell-substitution", "shell-option", "shell-construct"}, refused
    assert len(refused) <= len(rows) // 20, refused


def test_the_recorders_record(run: ShellRun) -> None:
    assert run.started("id; ls | cat")[0][0] == "id"
    assert {"id", "ls"} <= set(PROGRAMS)
