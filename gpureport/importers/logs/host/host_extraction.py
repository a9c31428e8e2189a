"""Reads a host log, whose only device is the machine."""

from functools import partial
from typing import Protocol

from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.text.text_log import Form, FormExtraction

_RECORD = "record again, with a date and a time: sar -o, vmstat -t, or a CSV with a timestamp"
_OTHER = "record what is read: sar -u -r -b -P ALL, mpstat -P ALL, pidstat -u -r, vmstat -t or top -b"


class HostForm(Form, Protocol):
    """One way to write down what a machine did."""

    def __init__(self, around: tuple[int, int] | None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        ...

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines of a log, without blank ones, are of this form."""
        ...


class HostExtraction(FormExtraction):
    """One host log being read by a form."""

    def __init__(self, file: RawFile, placement: ReadOptions, form: type[HostForm]) -> None:
        """Prepare to read; nothing is read yet."""
        super().__init__(file, ReadOptions(tz=placement.tz), partial(form, placement.around))

    def _nothing(self) -> tuple[str, str]:
        """Return why no row is left, and what to do."""
        rejected = self._tally.rejected
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in rejected.items())
        what = f"none of its {self._tally.lines} lines ({self._form.name}) holds a value of a machine"
        return what + (f" ({reasons})" if reasons else ""), _RECORD if reasons else _OTHER
