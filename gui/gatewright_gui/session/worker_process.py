"""The worker process as the window has it: started, spoken to, heard, ended, without waiting for it."""

import pickle
import sys
from typing import cast

from PySide6.QtCore import QObject, QProcess, Signal

from gatewright_gui.session.worker import LENGTH_BYTES, Answer, Message, pack

END_MS = 2_000
"""Longer than any system needs to take a killed process away."""
_PROGRAM = "from gatewright_gui.session.worker import main; main()"


class WorkerProcess(QObject):
    """Runs from the start on. Close it: what is under way in it is lost, and nothing else."""

    answered = Signal(object)
    """Answer."""
    ended = Signal()
    """It ended by itself, or was killed by somebody else."""

    def __init__(self) -> None:
        super().__init__()
        self._received = bytearray()
        self._process = QProcess(self)
        self._process.setProcessChannelMode(QProcess.ProcessChannelMode.ForwardedErrorChannel)
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.finished.connect(self._finish)
        self._process.errorOccurred.connect(self._fail)
        is_self_contained = getattr(sys, "frozen", False)  # then the program is no Python, and has a word for it
        self._process.start(sys.executable, ["--worker"] if is_self_contained else ["-P", "-c", _PROGRAM])
        self._process.write(pack(sys.path))

    @property
    def process_id(self) -> int:
        """0 while it does not run."""
        return self._process.processId()

    @property
    def is_running(self) -> bool:
        """Tell whether it is there, or comes up."""
        return self._process.state() != QProcess.ProcessState.NotRunning

    def send(self, message: Message) -> None:
        """Say something; returns at once, whatever the worker is doing. One that has ended hears nothing."""
        if self.is_running:
            self._process.write(pack(message))

    def close(self) -> None:
        """End it now."""
        self._process.blockSignals(True)
        self._process.kill()
        self._process.waitForFinished(END_MS)

    def _read(self) -> None:
        self._received += cast("bytes", self._process.readAllStandardOutput().data())
        while len(self._received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big")
            if len(self._received) < end:
                return
            answer: Answer = pickle.loads(memoryview(self._received)[LENGTH_BYTES:end])
            del self._received[:end]
            self.answered.emit(answer)

    def _finish(self, *_: object) -> None:
        self.ended.emit()

    def _fail(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self.ended.emit()
