"""Whether what is shown of a call is still of the call that is filled in. It decides and shows nothing itself."""

from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright_gui.pages.console.outcome import OutcomePanel
from gatewright_gui.pages.console.request import RequestPanel
from gatewright_gui.session.calls import CallRequest

DELAY_MS = 150
MAX_COMPARED = 50_000
"""Characters of JSON that are compared by what they say; longer ones to the letter."""


class StaleMark(QObject):
    """Looks a moment after something was edited, and marks the verdict of another call."""

    def __init__(self, request: RequestPanel, outcome: OutcomePanel, parent: QObject) -> None:
        super().__init__(parent)
        self._request, self._outcome = request, outcome
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._look)
        for signal in (request.form.changed, request.raw.changed, request.tool_shown, request.agent_chosen):
            signal.connect(self.look_soon)
        outcome.record_shown.connect(self.look_soon)

    def look_soon(self, *_what: object) -> None:
        """Something may be another call now."""
        if self._outcome.shown is not None:
            self._timer.start()

    def _look(self) -> None:
        record = self._outcome.shown
        if record is not None:
            self._outcome.verdict.set_stale(stale=not self._is_same(record.request))

    def _is_same(self, request: CallRequest) -> bool:
        now = self._request
        if (now.agent_id, now.tool_name) != (request.agent_id, request.tool):
            return False
        given = now.raw.text if now.mode.current == "json" else now.form.values_as_far()
        return given == request.arguments or _value(given) == _value(request.arguments)


def _value(arguments: str | Mapping[str, JsonValue]) -> object:
    if not isinstance(arguments, str):
        return dict(arguments)
    if len(arguments) > MAX_COMPARED:
        return arguments
    try:
        return parse_object(arguments)
    except JsonRefused:
        return arguments
