"""The job that is recorded: a program that runs as if nobody watched it."""

import contextlib
import subprocess
from collections.abc import Sequence

from gpureport.errors import SettingsError
from gpureport.regular_files import code_system_error

SIGNAL_BASE = 128
"""What shells add to the number of the signal that ended a program."""


class JobProcess:
    """A running job, with the standard streams and the signals of the recorder.

    Attributes:
        pid: its process number.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Start it.

        Raises:
            SettingsError: when there is no such program, or it cannot be run.
        """
        try:
            self._process = subprocess.Popen(command)  # noqa: S603 - what the person typed
        except OSError as error:
            what = error.strerror or "cannot be run"
            what, code = what[:1].lower() + what[1:], code_system_error(error, "cannot_run")
            raise SettingsError(command[0], what, "check the command after --", code=code) from error
        self.pid = self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code as shells give it; None while it runs."""
        code = self._process.poll()
        return SIGNAL_BASE - code if code is not None and code < 0 else code

    def send(self, number: int) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
