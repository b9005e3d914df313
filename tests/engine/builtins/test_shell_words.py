"""Words of shell commands through ``shell_exec`` with real bash: no spelling of a closed file, in no place, opens it.

Spellings and the places where a word may stand are put together; bash alone tells which of them name the file.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from gatewright.adapters import shell as shells
from gatewright.arguments.shell import MAX_COMMAND_BYTES
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.support.patience import in_time

SECRET = "closed-content"
POLICY = """\
gatewright = 1

[workspace]
roots = { shared = "work", tmp = "tmp" }

[workspace.shell]
backend = "BACKEND"
confine = "none"
allow = ["*", "xargs", "timeout", "nice", "env", "nohup", "setsid", "stdbuf", "ionice", "chrt", "time", "command",
    "exec", "find -exec", "sed -e", "f", "awk", "npm", "pytest", "let", "python3", "sh", "A=", "LC_ALL="]
deny = ["rm", "shred"]
allow_substitution = true

[defaults]
approvals = { privileged = "allow" }

[agents.a]
tools = ["shell_exec"]
capabilities = ["Exec", { FsWrite = { prefixes = ["work", "tmp"] } }, { FsRead = { prefixes = ["work", "tmp"] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [{ pattern = "secret/**", permission = "none" }]

[[sources]]
id = "work"
type = "file"
base_path = "work"
default_permission = "read_write"
permission_rules = [{ pattern = ".env", permission = "none" }, { pattern = "kept.txt", permission = "read_only" }]
"""


class Bench(NamedTuple):
    """A workspace with closed files, and one like it without a gate."""

    workspace: Workspace
    twin: Path

    @property
    def folder(self) -> Path:
        return self.workspace.folder

    def verdict(self, command: str) -> Verdict:
        return self.workspace.decide("a", "shell_exec", {"command": command}).verdict

    def reads(self, command: str) -> bool:
        """Whether bash reads a closed file by the command, in the twin."""
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", f"enable -n printf test '['; {command}"],
            cwd=self.twin / "work", env=shells.ENVIRONMENT, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return SECRET in (done.stdout + done.stderr).decode(errors="replace")


def fill(folder: Path, policy: str) -> None:
    """Make the files of a workspace."""
    for name in ("docs/secret", "work/src", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    texts = {"docs/secret/s.txt": SECRET, "work/.env": SECRET, "work/kept.txt": "kept\n", "work/n.txt": "note\n",
             "work/src/a.py": "code\n", "policy.toml": policy}  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)


def contents(folder: Path) -> dict[str, bytes]:
    """What nobody may change."""
    names = ("docs/secret/s.txt", "work/.env", "work/kept.txt", "policy.toml")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


@pytest.fixture(params=["host"])
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    policy = POLICY.replace("BACKEND", request.param)
    fill(tmp_path / "ws", policy)
    fill(tmp_path / "twin", policy)
    workspace = Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")
    yield Bench(workspace, tmp_path / "twin")
    workspace.close()


def escaped(text: str, form: str) -> str:
    return "".join(form % ord(char) for char in text)


def spellings(path: str) -> dict[str, str]:
    """The ways to write a word that comes to ``path``: each kind of the grammar."""
    folder, _, name = path.rpartition("/")
    half = len(path) // 2
    return {
        "plain": path,
        "single": f"'{path}'",
        "double": f'"{path}"',
        "mixed": f"{path[:2]}'{path[2:half]}'\"{path[half:]}\"",
        "backslash": "".join(f"\\{char}" for char in path),
        "ansi": f"$'{path}'",
        "ansi hex": f"$'{escaped(path, chr(92) + 'x%02x')}'",
        "ansi octal": f"$'{escaped(path, chr(92) + '%03o')}'",
        "ansi unicode": f"$'{escaped(path, chr(92) + 'u%04x')}'",
        "ansi long": f"$'{escaped(path, chr(92) + 'U%08x')}'",
        "ansi part": f"{folder}/$'{name}'",
        "locale": f'$"{path}"',
        "braces": f"{{{path},n.txt}}",
        "braces empty": f"{path}{{,.old}}",
        "braces inner": f"{folder}/{{x,{name}}}",
        "braces nested": f"{{n.txt,{{{path},x}}}}",
        "braces quoted": f"{{'{path}',\"n.txt\"}}",
        "braces letters": f"{folder}/{{a..z}}.txt",
        "question": f"{folder}/?{name[1:]}",
        "star": f"{folder}/*",
        "class": f"{folder}/[{name[0]}]{name[1:]}",
        "negated": f"{folder}/[!#]{name[1:]}",
        "range": f"{folder}/[a-z]{name[1:]}",
        "star folders": "../*/*/s.txt",
        "star up": "*/../../docs/secret/s.txt",
        "dots up": "src/../../docs/secret/s.txt",
        "pwd": '"$PWD/' + path + '"',
        "oldpwd": '"${OLDPWD:-$PWD}/' + path + '"',
        "home": f"~+/{path}",
        "default": f"${{y:-{path}}}",
        "default bare": f"${{y-{path}}}",
        "instead": f"${{PWD:+{path}}}",
        "default quoted": f'"${{y:-{path}}}"',
        "assigning": f"${{y:={path}}}",
        "cut": '"${PWD%/work}/docs/secret/s.txt"',
        "count": f"{folder}/${{#y}}{path}",
        "arithmetic": f"$((0))/../{path}",
        "status": f"x$?/../{path}",
        "command": f"$(echo {path})",
        "command quoted": f'"$(echo {path})"',
        "backquotes": f"`echo {path}`",
        "pipe": f"<(cat {path})",
        "extended": f"@({path})",
    }  # fmt: skip


READING = {
    "argument": "cat W",
    "behind --": "cat -- W",
    "option": "grep -h '' --no-messages W n.txt",
    "long option": "sort --files0-from=W",
    "glued": "wc -l n.txt W",
    "sign": "dd if=W",
    "input": "cat < W",
    "assigned": 'v=W; cat "$v"',
    "assigned bare": "v=W; cat $v",
    "assigned twice": 'v=W; w=$v; cat "$w"',
    "grown": 'v=x; v+=W; cat "${v#x}"',
    "in parts": 'a=..; b=/docs/secret/; cat "$a$b"s.txt W',
    "exported": "export v=W; cat $v",
    "read only": "readonly v=W; cat $v",
    "in front": "v=W cat $v W",
    "for": 'for v in W; do cat "$v"; done',
    "for bare": "for v in n.txt W; do cat $v; done",
    "for twice": 'for v in W; do for w in "$v"; do cat "$w"; done; done',
    "select": "select v in W; do cat $v; break; done <<< 1",
    "case": 'case W in *) cat "$_" W;; esac',
    "case word": 'v=W; case "$v" in *s.txt) cat "$v";; esac',
    "here-string read": 'read v <<< W; cat "$v"',
    "here-string": "xargs cat <<< W",
    "here-document": "xargs cat <<E\nW\nE",
    "here-document plain": "xargs cat <<'E'\nW\nE",
    "here-document read": 'while read v; do cat "$v"; done <<E\nW\nE',
    "piped": "echo W | xargs cat",
    "printed": "printf '%s\\n' W | xargs -n 1 cat",
    "archived": "tar -cf - -T - <<< W",
    "function": 'f() { cat "$1"; }; f W',
    "function all": 'f() { cat "$@"; }; f W',
    "positional": "set -- W; cat $1",
    "last": 'true W; cat "$_"',
    "subshell": "(cat W)",
    "group": "{ cat W; }",
    "if": "if cat W; then echo; fi",
    "while": "while cat W; do exit; done",
    "and": "true && cat W",
    "piped in": "cat W | cat",
    "background": "cat W & wait",
    "runner": "timeout 5 cat W",
    "runners": "nice -n 1 env LC_ALL=C stdbuf -o0 cat W",
    "find": "find src -exec cat W {} +",
    "substituted": 'echo "$(cat W)"',
    "substituted input": 'echo "$(< W)"',
    "pipe name": "cat <(cat W)",
    "moved": "cd ../docs/secret; cat s.txt; cat W",
    "moved up": "cd ..; cat docs/secret/s.txt; cat W",
    "word of the shell": "let v=1; cat W",
}
WRITING = (
    "tee W < n.txt",
    "echo x > W",
    "echo x >> W",
    "cp n.txt W",
    "mv n.txt W",
    "ln -sf n.txt W",
    "dd if=n.txt of=W",
    "truncate -s 0 W",
    "sed -i s/./x/g W",
    "v=W; tee $v < n.txt",
    'for v in W; do cp n.txt "$v"; done',
    "sort -o W n.txt",
    "sort -oW n.txt",
    "read v <<< W; cp n.txt $v",
    "echo W | xargs cp n.txt",
    "timeout 5 cp n.txt W",
    "touch src/x; mv src/x W",
)


@pytest.mark.parametrize("bench", ["host", "session"], indirect=True)
async def test_no_spelling_in_no_place_of_a_command_reads_a_closed_file(bench: Bench) -> None:
    words, passed = spellings("../docs/secret/s.txt").values(), list[str]()
    for word, place in product(words, READING.values()):
        command = place.replace("W", word)
        if bench.verdict(command) is Verdict.ALLOW:
            passed.append(command)
            outcome = await bench.workspace.call("a", "shell_exec", {"command": command})
            assert SECRET not in str(outcome.data), command
    assert len(passed) < len(words) * len(READING) // 20, passed


def test_bash_reads_the_closed_file_by_most_of_these_spellings_and_places(bench: Bench) -> None:
    plain, words = "../docs/secret/s.txt", spellings("../docs/secret/s.txt").values()
    commands = {place.replace("W", plain) for place in READING.values()} | {f"cat {word}" for word in words}
    assert sum(map(bench.reads, commands)) > len(commands) * 3 // 4


@pytest.mark.parametrize("path", ["../docs/secret/s.txt", "../policy.toml", "kept.txt", ".env"])
async def test_no_spelling_in_no_place_of_a_command_changes_a_closed_file(bench: Bench, path: str) -> None:
    before = contents(bench.folder)
    for word, place in product(spellings(path if "/" in path else f"./{path}").values(), WRITING):
        command = place.replace("W", word)
        if bench.verdict(command) is Verdict.ALLOW:
            await bench.workspace.call("a", "shell_exec", {"command": command})
            assert contents(bench.folder) == before, command
            fill(bench.folder, POLICY.replace("BACKEND", "host"))


def test_what_bash_would_change_is_what_is_refused(bench: Bench) -> None:
    before, changed = contents(bench.twin), 0
    for place in WRITING:
        assert bench.verdict(place.replace("W", "../docs/secret/s.txt")) is Verdict.DENY
        bench.reads(place.replace("W", "../docs/secret/s.txt"))
        changed += contents(bench.twin) != before
        (bench.twin / "docs/secret/s.txt").unlink(missing_ok=True)
        fill(bench.twin, before["policy.toml"].decode())
    assert changed > len(WRITING) * 3 // 4


KNOWN = ("plain", "single", "double", "mixed", "backslash", "ansi", "ansi hex", "ansi octal", "ansi unicode",
         "ansi part", "braces", "braces inner", "braces quoted", "default", "default quoted")  # fmt: skip
IN_PLACE = ("argument", "behind --", "option", "glued", "assigned", "assigned bare", "exported", "for", "for bare",
            "for twice", "here-string", "subshell", "group", "if", "and", "piped in", "runner", "runners",
            "substituted", "pipe name")  # fmt: skip


@pytest.mark.parametrize("place", IN_PLACE)
def test_words_that_name_an_open_file_pass_however_they_are_spelled(bench: Bench, place: str) -> None:
    words = spellings("src/a.py")
    verdicts = {name: bench.verdict(READING[place].replace("W", words[name])) for name in KNOWN}
    assert verdicts == dict.fromkeys(KNOWN, Verdict.ALLOW)


HARMLESS = [
    'echo "what?"',
    'git commit -m "fix: why?"',
    'git commit -m "add [skip ci]"',
    'find src -name "*.py"',
    'grep "a.*b" src/a.py',
    'git log --format="%h{x}"',
    "awk '/x*[0-9]?/ { print $1 }' src/a.py",
    "awk '{ print $1 \".\" $2 }' n.txt",
    "sed -n 's/a*/b/p' src/a.py",
    "grep -E '^(a|b){2,3}$' src/a.py",
    "prettier --check 'src/**/*.{ts,js}'",
    "echo 'a * b'; printf '%s?\n' x",
    'npm test; echo "exit $?"',
    "npm run build && exit $?",
    'for f in src/*.py; do wc -l "$f"; done',
    "for i in 1 2 3; do echo $i; done",
    "for i in {1..20}; do sleep 1; done",
    'v=1.2; echo "version $v"; mkdir "out-$v"',
    'x=$(cat n.txt); echo "$x"',
    "[ $? -eq 0 ] && echo ok",
    '[ "$x" = "" ] || echo "$x"',
    'out=out; mkdir -p "$out" && cp n.txt "$out/n.txt"',
    "cat > tmp.ignore <<E\n.env\n../docs/secret\nE",
    "diff <(sort n.txt) <(sort src/a.py)",
    "ls", "ls .", "ls -l src", "ls -la src", "ls -R src", "ls ../docs", "timeout 5 grep code src/*.py",
]  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS)
def test_a_closed_file_in_the_folder_stops_no_command_that_is_not_about_it(bench: Bench, command: str) -> None:
    decision = bench.workspace.decide("a", "shell_exec", {"command": command})
    assert decision.verdict is Verdict.ALLOW, decision.reason


@pytest.mark.parametrize(
    "arguments",
    ["", "-l", "-1F", "-a", "-la", "-A", "--all", "-f", "-R", "--recursive", "-Ra", "-w 80", "-I x", "--hide x", "-d"],
)
@pytest.mark.parametrize("hidden", [".env", "shown.env"])
def test_a_listing_of_here_is_one_question_however_it_is_asked(bench: Bench, arguments: str, hidden: str) -> None:
    (bench.folder / "work/.env").rename(bench.folder / "work" / hidden)
    policy = bench.folder / "policy.toml"
    policy.write_text(policy.read_text().replace('".env"', f'"{hidden}"'))
    bench.workspace.reload()
    command = f"ls {arguments}".strip()
    verdicts = {bench.verdict(f"{command}{place}") for place in ("", " .", " ./", " src/..")}
    assert len(verdicts - {bench.verdict(f"{command} src/..")}) <= 1
    assert bench.verdict(command) is bench.verdict(f"{command} .") is bench.verdict(f"{command} ./")
    shows = subprocess.run(["/bin/bash", "-c", command], cwd=bench.folder / "work", capture_output=True, check=False)
    if hidden in shows.stdout.decode():
        assert bench.verdict(command) is Verdict.DENY


@pytest.mark.parametrize(
    "command",
    ["ls .e*", "ls -d .e*", "ls .en?", "ls -d .[e]nv", "ls */../.env", "ls .env",
     "ls ../docs/*", "ls ../d*", "ls ../*/*", "ls ../docs/secret",
     "f=.e; ls $f*", "for f in .e*; do echo $f; done", "echo .e*", "echo ../docs/secret/*", "./ls ."],
)  # fmt: skip
def test_names_that_are_closed_are_shown_by_no_pattern(bench: Bench, command: str) -> None:
    assert bench.verdict(command) is Verdict.DENY


@pytest.mark.parametrize(
    "name", [*shells.ENVIRONMENT, "PWD", "OLDPWD", "_", "0", "1", "@", "*", "BASH_COMMAND", "SHELL"]
)
def test_a_variable_that_the_shell_sets_is_not_known(bench: Bench, name: str) -> None:
    (bench.folder / "work/cat").mkdir()
    for word in (f"${{{name}}}/../../docs/secret/s.txt", f"${{{name}:-n.txt}}", f"${{{name}}}"):
        assert bench.verdict(f"cat {word}") is bench.verdict(f'cat "{word}"') is Verdict.DENY, word


RUNNERS = ("timeout 5 C", "nice -n 3 C", "env A=b C", "nohup C", "setsid C", "stdbuf -oL C", "ionice C", "chrt -o 0 C",
           "time C", "xargs C", "xargs -I{} C {}", "find src -exec C {} +", "find src -exec nice C {} \\;", "command C",
           "exec C", "timeout 5 nice env C", "echo n.txt | xargs C", "nice -- C")  # fmt: skip
WITHIN = ("xargs sh -c 'C'", "xargs <<< C", "xargs <<E\nC\nE")
UNREAD = ("env -S 'C'", "f='C'; env $f", "echo C | xargs env", "for f in ls C; do env $f; done",
          "for f in ls C; do echo n.txt | xargs $f; done", "timeout -z 5 C", "timeout $x C",
          "env PATH=. C", "env LD_PRELOAD=./x C", "xargs -a n.txt C", "xargs -I C C", "time -o n.txt C")  # fmt: skip
DENIED = ("rm n.txt", "/bin/rm n.txt", "RM n.txt", "../../bin/rm n.txt", "shred n.txt")
SPELLED = ("R\\m n.txt", "'rm' n.txt", "$'r\\x6d' n.txt", "r[m] n.txt", "/bin/r? n.txt", "{rm,n.txt}", "{r,s}m n.txt",
           "${x:-rm} n.txt", "r${x}m n.txt", "r* n.txt")  # fmt: skip


@pytest.mark.parametrize("runner", RUNNERS + WITHIN)
def test_a_denied_program_is_denied_behind_each_program_that_runs_others(bench: Bench, runner: str) -> None:
    for denied in DENIED if runner in WITHIN else DENIED + SPELLED:
        assert bench.verdict(runner.replace("C", denied)) is Verdict.DENY, denied
    assert bench.verdict(runner.replace("C", "wc n.txt")) is Verdict.ALLOW


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("npm test", "`npm` may change files of `work`: its word `test` could be one, and is set to changes ask"),
        ("pytest -q", "`pytest` may change files of `work`: its word `-q` could be one, and is set to changes ask"),
        ("cp n.txt tmp", "`cp` may change `n.txt` of `work`, which is set to changes ask"),
        ("npm run src", "`npm` may change `src` of `work`, which is set to changes ask"),
        ("timeout 5 touch n.txt", "`touch` may change `n.txt` of `work`, which is set to changes ask"),
    ],
)
def test_a_question_says_which_program_may_change_what(bench: Bench, command: str, asks: str) -> None:
    policy = bench.folder / "policy.toml"
    source = '\n[[sources]]\nid = "work"'
    head, _, tail = policy.read_text().partition(source)
    tail = tail.replace('"read_write"', '"partner"').partition("permission_rules")[0]
    policy.write_text(f"{head}{source}{tail}")
    bench.workspace.reload()
    decision = bench.workspace.decide("a", "shell_exec", {"command": command})
    assert decision.verdict is Verdict.ASK
    reason = next(row.reason for row in decision.trace if row.stage == "permission")
    assert reason.startswith(asks), reason


@pytest.mark.parametrize("runner", UNREAD)
def test_what_a_wrapper_starts_has_to_be_written_out(bench: Bench, runner: str) -> None:
    assert bench.verdict(runner.replace("C", "rm n.txt")) is bench.verdict(runner.replace("C", "wc")) is Verdict.DENY


async def test_known_payloads_open_nothing_that_is_closed(bench: Bench, corpora: Path) -> None:
    before, room = contents(bench.folder), asyncio.Semaphore(8)  # some of them sleep

    async def attempt(command: str) -> None:
        async with room:
            outcome = await bench.workspace.call("a", "shell_exec", {"command": command})
            assert SECRET not in str(outcome.data), command
            assert contents(bench.folder) == before, command

    attempts = list[Awaitable[None]]()
    for row in json.loads((corpora / "attack_shell_injection.json").read_text("utf-8")):
        for command in (f"cat {row['payload']}", f'cat "{row["payload"]}"', f"tee n.txt <<< {row['payload']}"):
            stays = "/" not in command and "~" not in command  # it is run as whoever runs the tests
            if bench.verdict(command) is Verdict.ALLOW and stays:
                attempts.append(attempt(command))
    assert attempts
    await asyncio.gather(*attempts)


@pytest.mark.parametrize(
    "piece",
    ["{a,b}", "{a,", "$x", "$x ", "x=$x;", "x=$x$x$x;", "${x:-a}", "*", "* ", "a*/", "{1..999}", "{{", "{a{b",
     "$'\\x41'", "x=a;y=$x$x;x=$y;", "[", "[a", "~", "~ ", "$? ", "$((1))", "<<<a ", "for x in $x;do "],
)  # fmt: skip
def test_words_in_great_number_cost_no_more_than_their_length(piece: str) -> None:
    from time import thread_time

    from gatewright.arguments.shell import ShellRules, parse_command

    rules = ShellRules(frozenset({"ls", "cat"}), allow_substitution=True)
    spent = list[float]()
    for size in (MAX_COMMAND_BYTES // 8, MAX_COMMAND_BYTES):
        text = ("ls " + piece * size)[:size]
        begun = thread_time()
        parse_command(text, rules, lambda target, _: target)
        spent.append(thread_time() - begun)
    assert in_time(spent[1], 0.3), spent
