"""The licences of what the self-contained program is made of, as files to go with it on every system."""

import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

KEPT = Path(__file__).with_name("licenses")
FILES = ("licen", "copying", "notice", "authors")


def licence_files(modules: Iterable[str]) -> list[tuple[str, str]]:
    """Where each file goes, and where it lies: of Python, of Qt, and of each distribution that a module came from."""
    owners = packages_distributions()
    names = {name for module in modules for name in owners.get(module.partition(".")[0], ())}
    python = Path(sysconfig.get_path("stdlib"), "LICENSE.txt")
    found = [(f"licenses/qt/{path.name}", str(path)) for path in sorted(KEPT.iterdir())]
    found += [("licenses/python/LICENSE.txt", str(python))] if python.is_file() else []
    for name in sorted(names):
        own = distribution(name)
        found += [(f"licenses/{name.lower()}/{path.name}", str(path)) for path in _licences_of(own)]
    return found


def _licences_of(one: Distribution) -> list[Path]:
    """Its licence files; where its wheel has none, what its maker wrote of it, which names the licence."""
    inside = [path for path in one.files or () if path.parts[0].endswith(".dist-info")]
    texts = [path for path in inside if "licenses" in path.parts or path.name.lower().startswith(FILES)]
    return [Path(path.locate()) for path in texts or [path for path in inside if path.name == "METADATA"]]
