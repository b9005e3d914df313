"""Programs that start other programs, by their nature or by one of their options.

No such list is complete. The list here excludes shells and interpreters from ``*``, and stops common programs from
starting others; it cannot see what a program reads from files of its own (hooks of git, a Makefile).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex

EVERY = "*"


class Listing(StrEnum):
    """The names in a folder that a call prints: all, or those that do not begin with a dot."""

    PLAIN = "plain"
    ALL = "all"


@frozen
class ShellRules:
    """The commands that may start.

    ``allow`` lists programs, alone or with their first words, ``*`` for all except those that exist to run others,
    ``program option`` for an option that runs others, ``NAME=`` for a variable in capitals that a command may set.
    ``deny`` beats ``ask``, which beats ``allow``. ``is_fresh``: no earlier command left functions or variables to the
    shell.
    """

    allow: tuple[str, ...] | frozenset[str] = ()
    deny: tuple[str, ...] | frozenset[str] = ()
    allow_substitution: bool = False
    is_fresh: bool = True
    ask: tuple[str, ...] | frozenset[str] = ()


def names(text: str) -> frozenset[str]:
    """Split a text into its words."""
    return frozenset(text.split())


_BUILTINS = (
    ". source eval exec command builtin trap alias unalias enable hash compgen complete compopt bind fc history jobs "
    "declare typeset let mapfile readarray getopts shopt coproc caller disown suspend"
)
_WRAPPERS = (
    "env xargs sudo su doas pkexec runuser nohup time timeout nice ionice chrt taskset stdbuf setsid setpriv capsh "
    "chroot unshare nsenter flock parallel watch script expect strace ltrace valgrind perf gdb lldb busybox toybox "
    "systemd systemctl start-stop-daemon run-parts crontab at batch screen tmux dtach ssh sshpass scp sftp mosh rsh "
    "rlogin telnet ftp lftp nc ncat netcat socat nmap docker podman kubectl helm vagrant ansible terraform flatpak "
    "snap apt apt-get dpkg rpm yum dnf open xdg-open dbus ld faketime unbuffer entr firejail bwrap proot fakeroot "
    "catchsegv rlwrap setarch linux32 linux64 i386 x86_64 prlimit choom uclampset numactl cpulimit cgexec softlimit "
    "chpst runcon sg newgrp ip tcpdump logsave chronic ifne pee hyperfine watchexec direnv eatmydata torsocks "
    "proxychains xvfb xinit startx cpio diff3 msgexec msgfilter logrotate service machinectl busctl wine qemu "
    "scriptlive pamexec not ctest sotruss memusage ldd debconf enosys coresched waitpid invoke gdbserver libtool rr "
    "uftrace heaptrack kcov bpftrace criu strace64 bear ccache sccache icecc xterm urxvt rxvt konsole kitty "
    "alacritty foot terminal gio gtk exo kde gapplication mailcap see compose gosu tini catatonit daemon daemonize "
    "supervise runsv runsvdir svscan envdir envuidgid setuidgid pgrphack setlock s6 execlineb incron mispipe lckdo "
    "vipe vidir retry sem clush pdsh pssh dh debuild autoreconf automake autom4te aria2c lit bugpoint creduce "
    "wasmtime wasmer wasm3 lli coverage git-shell gp gprofng fstab-decode"
)
_INTERPRETERS = (
    "sh bash rbash dash ash ksh mksh zsh csh tcsh fish elvish nu xonsh pwsh cmd awk gawk mawk nawk original-awk "
    "python pypy ipython perl ruby irb php lua luajit tclsh wish node nodejs deno bun tsx ts-node java groovy scala "
    "kotlin julia r rscript octave gnuplot ghc runghc osascript m4 dc ed ex vi view vim nvim vimdiff emacs nano pico "
    "joe less more most man info sqlite mysql psql mongo mongosh redis-cli mail mailx mutt gpg pager editor sensible "
    "zless openssl gs tex latex pdflatex pdftex xetex xelatex luatex lualatex groff nroff troff guile sbcl racket "
    "swift dotnet mono erl elixir iex escript raku jshell jrunscript posh yash slsh pydoc perldoc prove cpan w3m lynx "
    "links hg svn"
)
_BUILDERS = (
    "make gmake cmake ninja meson bazel cargo rustc go gcc g++ cc c++ clang clang++ tcc npm npx pnpm yarn corepack "
    "mvn just task scons invoke fab nix guix brew pacman apk zypper conda mamba pdm hatch gulp grunt cpp c89 c99 as "
    "distcc gradle ant rake bundle gem pip pipx uv tox nox pytest poetry composer rustup stack cabal mix rebar sbt"
)
_OF_SHELL = names(_BUILTINS)
_NAMED_ONLY = names(f"{_BUILTINS} {_WRAPPERS} {_INTERPRETERS} {_BUILDERS}")
MOVING = frozenset({"cd", "pushd", "popd"})
_READING = names(
    ": [ basename cat cksum cmp comm cut df diff dirname du echo egrep exit export expand expr false fgrep fold grep "
    "head id join kill local ls md5sum nl od paste printf pwd read readlink readonly realpath return rev rg seq set "
    "sha1sum sha256sum sha512sum sleep stat tac tail test tr true uname unset wc whoami"
)
"""Programs that change none of their files, whatever their options."""
_READING_VERBS = {
    "git": names("blame cat-file describe diff grep log ls-files ls-tree rev-list rev-parse shortlog show status"),
    "systemctl": names("is-active is-enabled is-failed list-timers list-units reload restart show start status stop"),
}
_PRINTING = names(": echo exit false kill printf return seq sleep true wait")
"""Programs that open none of the files that their arguments name."""
_COMPARING = names("= == != < > -eq -ne -lt -le -gt -ge")
_NAMED_IN_INPUT = names("cksum du md5sum sha1sum sha256sum sha512sum wc")
_TEXTUAL = (MOVING | names("date hostname id mkdir tee touch uniq") | _READING) - _NAMED_IN_INPUT
"""Programs that take no names of files from their input."""
_SETTING = names("read export readonly local unset set wait")
_LISTING = names("ls dir vdir")
_DESCENDING = names("ack ag fd fdfind rgrep tree du")
_GREP_FLAGS = "rRniIlLHhcowvxEFPsqzZaU"
_SEARCHING = {**dict.fromkeys(("grep", "egrep", "fgrep"), _GREP_FLAGS), "rg": "niIlcvwxSsFLNHUPopu0az"}
"""The letters of options without a value; after any other option, every argument may be the place to search."""
_VERSION = late_regex(r"[-.]?[0-9][0-9.]*\Z")


def may_move(program: str) -> bool:
    """Tell whether a program may act in another folder: it goes there, or runs others that may."""
    return program in MOVING or runs_others(program)


@lru_cache(256)
def runs_others(name: str) -> bool:
    """Tell whether a program or word of the shell exists to run others, or code, so that ``*`` does not include it."""
    bare = name.rpartition("/")[2].lower()
    parts = (_VERSION.sub("", part) for part in re.split(r"[-._]", bare))  # `vim.tiny`, `arm-linux-gcc-12`
    return not _NAMED_ONLY.isdisjoint({bare, _VERSION.sub("", bare), *parts})


def sets_variables(name: str) -> bool:
    """Tell whether a word of the shell may set the variables that its arguments name, or run such a word."""
    return name in _SETTING or name in _OF_SHELL


def opens_nothing(name: str, arguments: Sequence[str | None]) -> bool:
    """Tell whether a program opens none of its arguments, unknown ones (None) included."""
    if name not in {"[", "test"}:
        return name in _PRINTING
    held = arguments[1:] if arguments[:1] == ["!"] else arguments
    return len(held) == 1 or (len(held) == 2 and held[0] in {"-n", "-z"}) or (len(held) == 3 and held[1] in _COMPARING)


def takes_only_text(name: str) -> bool:
    """Tell whether a known program reads no file names from its input."""
    return name in _TEXTUAL


def stands_for_itself(name: str) -> bool:
    """Tell whether the judge relies on the effects of this program, so that no function may replace it."""
    return name in _TEXTUAL or name in _PRINTING or name in _LISTING or name in _SETTING


def listing(name: str, arguments: Sequence[str]) -> Listing | None:
    """Return the names that a call shows if it lists folders without entering others; None for any other call."""
    options = [argument for argument in arguments if argument.startswith("-")]
    if name not in _LISTING or any(re.match(r"-[^-]*R|--r", option) for option in options):
        return None
    return Listing.ALL if any(re.match(r"-[^-]*[aAf]|--a", option) for option in options) else Listing.PLAIN


def takes_whole_folder(name: str, arguments: Sequence[str]) -> bool:
    """Tell whether a call may search its working folder although no argument names it."""
    if name in _LISTING:
        if not arguments:
            return True
        options = [argument for argument in arguments if argument[:1] in {"", "-"}]
        valued = [one for one in options if re.fullmatch(r"-[^-]*[ITw]|--(?:hid|ig|in|ti|ta|w|c|f|q|s)[^=]*", one)]
        return len(arguments) - len(options) <= len(valued)
    if name == "find":
        return not arguments or arguments[0][:1] in {"", "-", "(", "!"}
    flags = _SEARCHING.get(name)
    if flags is None:
        return name in _DESCENDING
    options = [argument for argument in arguments if argument[:1] in {"", "-"}]
    if name != "rg" and not any(re.match(rf"-[{flags}0-9]*[rRd]|--(?:r|de|di)", option) for option in options):
        return False
    has_value = any(not re.fullmatch(f"-[{flags}]+", option) for option in options)
    return has_value or len(arguments) - len(options) < len(("pattern", "place"))


def only_reads(name: str, arguments: Sequence[str]) -> bool:
    """Tell whether a call of a known program changes none of the files that its arguments name."""
    if option_that_runs(name, arguments):
        return False
    if name in _READING_VERBS:
        to_file = any(argument.startswith("--ou") for argument in arguments)  # git also accepts `--output` shortened
        return bool(arguments) and arguments[0] in _READING_VERBS[name] and not to_file
    return name in _READING


@frozen
class _Options:
    """The options of one program that start others.

    ``long`` ones may be shortened, ``letters`` stand behind one dash, alone or among others, ``words`` are whole
    arguments.
    """

    long: tuple[str, ...] = ()
    letters: str = ""
    words: frozenset[str] = frozenset()

    def find(self, arguments: Sequence[str]) -> str:
        """Return the first of them, in full; empty for none."""
        for argument in arguments:
            if argument in self.words:
                return argument
            if argument.startswith("--"):
                name = argument.partition("=")[0]
                if len(name) > len("--") and (found := next((one for one in self.long if one.startswith(name)), "")):
                    return found
            elif argument.startswith("-") and (letter := next((one for one in self.letters if one in argument), "")):
                return f"-{letter}"
        return ""


_TAR = _Options(
    (
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "--rsh-command",
        "--rmt-command",
        "--info-script",
        "--new-volume-script",
    ),
    "IF",
)
_GIT = _Options(
    (
        "--exec-path",
        "--config-env",
        "--config",
        "--template",
        "--upload-pack",
        "--receive-pack",
        "--extcmd",
        "--ext-diff",
        "--textconv",
        "--open-files-in-pager",
    ),
    words=names(
        "config bisect submodule filter-branch difftool mergetool daemon instaweb rebase send-email hook shell "
        "gui for-each-repo citool maintenance archive svn p4 cvsserver imap-send remote-ext merge-index merge-octopus "
        "merge-resolve quiltimport credential credential-cache credential-store upload-pack receive-pack http-backend "
        "send-pack fetch-pack scalar help cvsimport request-pull"
    ),
)
_GIT_VALUED = frozenset({"-C", "--git-dir", "--work-tree", "--namespace"})
_GIT_LETTERS = {"clone": "cu", "grep": "O"}
_OPTIONS = {
    "find": _Options(words=frozenset({"-exec", "-execdir", "-ok", "-okdir"})),
    "fd": _Options(("--exec", "--exec-batch"), "xX"),
    "fdfind": _Options(("--exec", "--exec-batch"), "xX"),
    "tar": _TAR,
    "gtar": _TAR,
    "bsdtar": _TAR,
    "sort": _Options(("--compress-program",)),
    "split": _Options(("--filter",)),
    "rsync": _Options(("--rsh", "--rsync-path"), "e"),
    "zip": _Options(("--test", "--unzip-command"), "T"),
    "sdiff": _Options(("--diff-program",)),
    "install": _Options(("--strip-program",)),
    "wget": _Options(("--execute", "--use-askpass", "--config"), "e"),
    "rg": _Options(("--pre", "--hostname-bin")),
    "git": _GIT,
    "sed": _Options(("--file",), "f"),
}
_ADDRESS = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])*/)"
_SED = late_regex(
    rf"\s*(?:{_ADDRESS}(?:,[+~]?{_ADDRESS})?)?\s*!?\s*(?:[pdqDGHhgxnNP=]|"
    r"s([/|,:#@])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpIi0-9]*)?\s*"
)
_PLAIN = {
    "read": late_regex(r"-[rs]+|-[rs]*[dnt]|[a-z_][A-Za-z0-9_]*|[0-9.]+"),
    "wait": late_regex(r"[0-9%]+|-n"),
    "set": late_regex(r"[-+][eufx]+|[-+][eufx]*o|pipefail|errexit|nounset|xtrace|noglob"),
}
"""Words of the shell that evaluate their arguments, with the arguments that are safe for them."""


def needs_plain_arguments(name: str) -> bool:
    """Tell whether the effect of a program depends on its arguments, so that these must be known."""
    return name in _OPTIONS or name in _PLAIN


def option_that_runs(name: str, arguments: Sequence[str]) -> str:
    """Return the option (or word) with which a call would start another program; empty for none."""
    plain = _PLAIN.get(name)
    if plain is not None:
        return next((argument for argument in arguments if not plain.fullmatch(argument)), "")
    options = _OPTIONS.get(name)
    if options is None:
        return ""
    if name == "git":
        return _git_option(arguments)
    if name == "sed" and (script := _sed_script(arguments)):
        return script
    if options is _TAR and arguments and not arguments[0].startswith("-"):
        arguments = (f"-{arguments[0]}", *arguments[1:])
    return options.find(arguments)


def _git_option(arguments: Sequence[str]) -> str:
    """Find the option of git that starts a program: ``-c`` before the verb, other letters behind it, or the verb
    itself.
    """
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at].startswith("-c"):
            return "-c"
        at += 2 if arguments[at] in _GIT_VALUED else 1
    verb = arguments[at] if at < len(arguments) else ""
    if verb in _GIT.words or "--" in verb.lstrip("-"):  # `submodule--helper`, `web--browse`: parts of other verbs
        return verb
    letters = _Options(letters=_GIT_LETTERS.get(verb, "")).find(arguments[at:])
    return letters or _Options(_GIT.long).find(arguments)


def _sed_script(arguments: Sequence[str]) -> str:
    """Return ``-e`` where a script may do more than print, delete and replace: GNU sed starts programs and writes
    files.
    """
    scripts: list[str] = []
    files: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            files += rest
        elif argument.startswith("--"):
            if argument.partition("=")[0] not in {"--quiet", "--silent", "--regexp-extended", "--in-place", "--posix"}:
                return "-e"
        elif argument.startswith("-") and len(argument) > 1:
            if re.fullmatch(r"-[nErsuz]*(?:e|i(?:\.[A-Za-z0-9]+)?)?", argument) is None:
                return "-e"
            if argument.endswith("e"):
                scripts.append(next(rest, ""))
        else:
            files.append(argument)
    scripts += files[:1] if not scripts else []
    parts = (part for script in scripts for part in re.split(r";|\n", script))
    return "" if all(_SED.fullmatch(part) for part in parts) else "-e"
