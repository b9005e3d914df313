"""What every test gets: user folders of its own, the event loop its floor uses, and guards against unseen errors.

Of the project it knows how the app loads Qt and its loop: the fixtures hold for the engine without Qt and for the
window with it.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from weakref import WeakSet

import pytest
from hypothesis import settings

from tests.support.patience import Guard
from tests.support.xvfb import Display, private_display

os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as the program does for itself
# Before Qt: its import hook breaks the lazy modules of pydantic when those come second.
import_module("pydantic.fields")
# As the program does: under the hook every import reads a source text, and every one in a function takes longer.
import_module("gatewright_gui.qt.plainimport").load_qt()

pytest_plugins = ["tests.support.postgres"]
ROOT = Path(__file__).resolve().parent.parent
CORPORA = ROOT.parent / "shared" / "corpora"
QT_FOLDERS = (ROOT / "tests" / "gui", ROOT / "tests" / "journeys")
QT_FIXTURES = frozenset({"qtbot", "qapp", "qtmodeltester"})
USER_FOLDERS = {
    "HOME": ".",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "GATEWRIGHT_KEYS": "keys",
}

# The same examples on every machine, so that a check says the same twice; `--hypothesis-profile=search` draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("same")

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGALRM)
_guard = pytest.StashKey[Guard]()
_kept_applications: list[object] = []
_open_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def pytest_configure(config: pytest.Config) -> None:
    """Draw nowhere; a run of journeys changes that once it has a display of its own."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    config.stash[_guard] = Guard(os.dup(2))  # while pytest does not catch what is written there


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test goes on where nothing moves."""
    guard = item.config.stash[_guard]
    guard.begin()
    try:
        return (yield)
    finally:
        guard.end()


def pytest_enter_pdb(config: pytest.Config) -> None:
    """Somebody looks at a test."""
    config.stash[_guard].end()


def pytest_sessionfinish() -> None:
    """The last collection looks through everything, also what was put aside, and tells what was left open."""
    gc.unfreeze()


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, LoopFactory]:
    """The Qt loop for tests that meet Qt, the plain one of asyncio for all others."""
    return {"qt": _qt_loop} if _meets_qt(item) else {"plain": asyncio.new_event_loop}


def _meets_qt(item: pytest.Item) -> bool:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return any(folder in item.path.parents for folder in QT_FOLDERS) or not QT_FIXTURES.isdisjoint(fixtures)


def _qt_loop() -> asyncio.AbstractEventLoop:
    from PySide6.QtWidgets import QApplication

    application = QApplication.instance() or QApplication([])
    _kept_applications[:] = [application]  # the wrapper owns the C++ object, which has to outlive every loop
    loop: asyncio.AbstractEventLoop = import_module("gatewright_gui.qt.loop").make_loop(application)
    _open_loops.add(loop)
    return loop


@pytest.fixture(scope="session", autouse=True)
def events_wait_for_their_loop() -> Iterator[None]:
    """Between the parts of a test pytest-qt handles events, and with them the steps of tasks, while no loop is running,
    which they cannot do without. As long as a loop is open its own turns handle everything.
    """
    plugin = import_module("pytestqt.plugin")
    handle: Callable[[], None] = plugin._process_events

    def handle_unless_open() -> None:
        if all(loop.is_closed() for loop in _open_loops):
            handle()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugin, "_process_events", handle_unless_open)
        yield


@pytest.fixture(scope="session", autouse=True)
def journey_display(request: pytest.FixtureRequest) -> Iterator[Display | None]:
    """Start the private display before any QApplication exists, in a run that holds journeys and nothing else."""
    if not all(item.get_closest_marker("journey") for item in request.session.items):
        yield None
        return
    with private_display() as display, pytest.MonkeyPatch.context() as patch:
        for name, value in display.environ().items():
            patch.setenv(name, value)
        patch.delenv("WAYLAND_DISPLAY", raising=False)
        yield display


@pytest.fixture(scope="module", autouse=True)
def what_lasts_is_put_aside() -> None:
    """Not looked through again by every collection: the tests themselves alone are some hundred thousand objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def all_is_as_before() -> Iterator[None]:
    """Fail a module that leaves something of the process changed, on which a test of another module would depend."""
    known = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    before = _surroundings([logging.root, *known])
    yield
    now = _surroundings([logging.root, *known])
    left = {name: (before[name], now[name]) for name in now if now[name] != before[name]}
    assert not left, f"the tests of this module left behind: {left}"


def _handler(number: signal.Signals) -> object:
    """The handler that somebody set. Where the tests run in the background some signals are ignored, and a loop that
    took one for a while gives it back to Python.
    """
    found = signal.getsignal(number)
    return None if found in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler) else found


def _surroundings(loggers: list[logging.Logger]) -> dict[str, object]:
    """What any code of this process may ask for."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "environment": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "folder": Path.cwd(),
        "umask": mask,
        "paths of modules": [*sys.path],
        "arguments": [*sys.argv],
        "signals": {number: _handler(number) for number in _SIGNALS},
        "loggers": {one: (one.level, one.disabled, [*one.handlers]) for one in loggers},
        "collector": gc.isenabled(),
        "folder of temporary files": tempfile.tempdir,
    }


@pytest.fixture
def display(journey_display: Display | None) -> Display:
    """The private X display; processes started by a journey draw on it without being told."""
    if journey_display is None:
        pytest.fail("journeys run by themselves: `pytest -m journey`")
    return journey_display


@pytest.fixture(autouse=True)
def user_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty home for this test alone: settings, data, state and keys of the person running the tests stay out."""
    with tempfile.TemporaryDirectory(
        prefix="home-", dir=tmp_path_factory.getbasetemp(), ignore_cleanup_errors=True
    ) as folder:
        home = Path(folder)
        for name, place in USER_FOLDERS.items():
            monkeypatch.setenv(name, str(home / place))
        monkeypatch.delenv("GATEWRIGHT_STATE", raising=False)
        yield home


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real tools and payloads that lies beside the checkout; it is no part of the repository."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora are not here: they lie in `shared/corpora` beside the checkout")
    return CORPORA


class _Collector(logging.Handler):
    """Keeps what asyncio could only log: exceptions of tasks nobody awaited, and of callbacks."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@pytest.fixture(autouse=True)
def no_unseen_error() -> Iterator[None]:
    """Fail a test that leaves a hook of its own behind or an exception in asyncio's log.

    What reaches the hooks is reported already: pytest-qt fails the test for `sys.excepthook`, and pytest warns, which
    is an error here, for `sys.unraisablehook` and `threading.excepthook`. A hook left behind would blind them.
    """
    hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook)
    collector, logger = _Collector(), logging.getLogger("asyncio")
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)
        left = (sys.excepthook, sys.unraisablehook, threading.excepthook)
        sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    assert left == hooks, "the test left an exception hook behind"
    assert not collector.messages, "\n".join(collector.messages)
