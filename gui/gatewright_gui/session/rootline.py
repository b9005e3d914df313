"""What is said of the roots beside the sources: their folders, and that grants decide there instead of levels.

It draws nothing and decides nothing.
"""

import os
from pathlib import Path

from gatewright_gui.session.document import Document


def root_line(document: Document) -> tuple[str, str]:
    """One line on the roots of the policy, and their real folders, a line for each; both empty where there is none."""
    policy, path = document.policy, document.path
    folder = path.parent if path is not None else Path()
    bases = {source.source_id: _real(folder, source.base_path) for source in policy.sources}
    plain: list[str] = []
    levelled: list[str] = []
    whole: list[str] = []
    for name, written in policy.roots.folders.items():
        real = _real(folder, written)
        holder = next((one for one, base in bases.items() if real.is_relative_to(base)), None)
        shown = name if Path(written).name == name else f"{name} ({written})"
        if holder is None:
            plain.append(shown)
        else:
            levelled.append(f"{shown} lies in source {holder}: its levels hold there too.")
        whole.append(f"{name}: {real}")
    said = [_plain(plain)] if plain else []
    return " ".join([*said, *levelled]), "\n".join(whole)


def _plain(names: list[str]) -> str:
    *most, last = names
    named = f"Roots {', '.join(most)} and {last}" if most else f"Root {last}"
    return f"{named}: no levels there; what an agent may do is in its FsRead and FsWrite."


def _real(folder: Path, written: str) -> Path:
    return Path(os.path.realpath(folder / written))
