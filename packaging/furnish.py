"""Writes what stands around the program: icons, the manual page, completions for shells. `furnish.py FOLDER`.

Below the folder things lie as they do below `usr/share`; `gatewright.ico` and `gatewright.icns` are for other systems.
"""

import gzip
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import typer
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from gatewright.cli.main import COMPLETION, NAMES
from gatewright.cli.table import command_line

HERE = Path(__file__).resolve().parent
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)
PLACES = {
    "bash": "bash-completion/completions/gatewright",
    "zsh": "zsh/vendor-completions/_gatewright",
    "fish": "fish/vendor_completions.d/gatewright.fish",
}
AUTOLOADED = b'[[ $zsh_eval_context[-1] != loadautofunc ]] || _gatewright_completion "$@"\n'
MANUAL = r""".TH GATEWRIGHT 1 "" "Gatewright {version}" "User Commands"
.SH NAME
gatewright \- decide what each LLM agent may do with each tool
.SH SYNOPSIS
.B gatewright
[\fIWORKSPACE\fR]
.br
.B gatewright
\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]
.SH DESCRIPTION
Without a command it opens the app, with the last workspace or the demo.
{commands}
.SH "EXIT STATUS"
0 fine or allow; 1 problems, failed verification or self-check; 2 usage; 3 a question nobody answered; 4 deny; 5 the
tool itself failed; 130 interrupted.
.SH FILES
.TP
.I policy.toml
The policy of a workspace; beside it lies what the policy names.
.TP
.I ~/.config/gatewright
What the app remembers.
.TP
.I ~/.local/share/gatewright
Keys, and the demo workspace.
"""


def write(path: Path, content: bytes) -> None:
    """With the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def manual() -> str:
    """The help of every command, one below the other."""
    table = command_line(NAMES)
    context = typer.Context(table, info_name="gatewright")
    sections: list[str] = []
    for name, command in table.commands.items():
        named = [(name, command, context)]
        for word, inner in getattr(command, "commands", {}).items():
            named.append((f"{name} {word}", inner, typer.Context(command, info_name=name, parent=context)))
        for words, one, parent in named:
            text = one.get_help(typer.Context(one, info_name=words.split()[-1], parent=parent))
            sections.append(f".SH {words.upper()}\n.nf\n{escaped(text)}\n.fi")
    return MANUAL.format(version=version("gatewright"), commands="\n".join(sections))


def escaped(text: str) -> str:
    """As roff takes it for what it is."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in plain.splitlines())


def icon(size: int) -> QImage:
    """Drawn anew for its size."""
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(HERE / "gatewright.svg")).render(painter)
    painter.end()
    return image


def furnish(folder: Path) -> None:
    """All of it."""
    icons = folder / "icons" / "hicolor"
    write(icons / "scalable" / "apps" / "gatewright.svg", (HERE / "gatewright.svg").read_bytes())
    for size in SIZES:
        place = icons / f"{size}x{size}" / "apps" / "gatewright.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        icon(size).save(str(place))
    icon(256).save(str(folder / "gatewright.ico"))
    icon(512).save(str(folder / "gatewright.icns"))
    write(folder / "man" / "man1" / "gatewright.1.gz", gzip.compress(manual().encode(), mtime=0))
    for shell, place in PLACES.items():
        asked = {**os.environ, COMPLETION: f"source_{shell}"}
        script = subprocess.check_output([sys.executable, "-m", "gatewright"], env=asked)
        script = script.lstrip()  # zsh reads what it is for off the first line
        write(folder / place, script + AUTOLOADED if shell == "zsh" else script)


if __name__ == "__main__":
    furnish(Path(sys.argv[1]))
