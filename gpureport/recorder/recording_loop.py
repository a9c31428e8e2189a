"""The loop of a recording: it copies lines, samples the machine and passes signals on."""

import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpureport.recorder.host_log import HostLog
from gpureport.recorder.job_process import JobProcess
from gpureport.recorder.line_file import LineFile
from gpureport.recorder.logged_program import LoggedProgram
from gpureport.recorder.signals import ENDING, SignalPipe, reaches_whole_group


@dataclass(slots=True, kw_only=True)
class RecordingLoop:
    """Waits for lines of programs, for the time of the next sample of the machine, and for signals.

    Attributes:
        host: the load of the machine.
        log: where it goes.
        programs: what prints the other logs.
        interval: seconds between two samples.
        stop_signal: the last signal that asked to end; None while none did.
        failure: why samples of the machine are missing; empty when none is.
    """

    host: HostLog
    log: LineFile
    programs: Sequence[LoggedProgram]
    interval: float
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _next_sample: float = 0.0
    _signals: SignalPipe | None = None
    _job: JobProcess | None = None
    stop_signal: int | None = None
    failure: str = ""

    def listen(self, signals: SignalPipe) -> None:
        """Begin to wait for signals and for the programs."""
        self._signals = signals
        self._selector.register(signals.descriptor, selectors.EVENT_READ)
        for program in self.programs:
            self._register(program)

    def watch_job(self, job: JobProcess) -> None:
        """Send signals on to the job, and log its processes."""
        self._job = job
        self.host.watch_job(job.pid)

    def run_until_signal(self) -> int:
        """Run until a signal asks to end."""
        self.run(None, until=lambda: self.stop_signal is not None)
        return 0

    def run(self, seconds: float | None, until: Callable[[], bool] = lambda: False) -> None:
        """Run for a time, without end if it is None, or until something has happened."""
        end = None if seconds is None else time.monotonic() + seconds
        while not until() and (end is None or time.monotonic() < end):
            self._wait(end)

    def _wait(self, end: float | None) -> None:
        """Wait for the next event, and do what it asks for."""
        now = time.monotonic()
        if now >= self._next_sample:
            self._sample_host(now)
        wait = min(self._next_sample, self._next_sample if end is None else end) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, wait)):
            if isinstance(key.data, LoggedProgram):
                self._copy(key.data, key.fd)
            else:
                self._handle_signals()
        for program in self.programs:
            if program.start_again():
                self._register(program)

    def _sample_host(self, now: float) -> None:
        try:
            sample = self.host.sample()
        except Exception as error:
            self.failure = f"{self.log.name} lacks samples: {type(error).__name__}: {error}."
            sample = None
        if sample is not None:
            self.log.write(f"{sample}\n".encode())
        # late samples are not made up for
        self._next_sample = max(self._next_sample + self.interval, now + self.interval / 2)

    def _register(self, program: LoggedProgram) -> None:
        if program.descriptor is not None:
            self._selector.register(program.descriptor, selectors.EVENT_READ, program)

    def _copy(self, program: LoggedProgram, descriptor: int) -> None:
        program.copy_output()
        if program.descriptor is None:
            self._selector.unregister(descriptor)

    def _handle_signals(self) -> None:
        asked = self._signals.take_signals() & set(ENDING) if self._signals else set()
        for number in asked:
            if self._job is not None and not reaches_whole_group(number):
                self._job.send(number)
        self.stop_signal = min(asked, default=self.stop_signal)
