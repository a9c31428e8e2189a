"""The importer of host logs: finds the form by its content."""

from functools import partial
from typing import ClassVar

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.decoding.pieces import head as text_head
from gpureport.importers.decoding.pieces import head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.host.host_form import HostForm
from gpureport.importers.logs.host.recorder_csv.csv_log import HostCsv
from gpureport.importers.logs.host.recorder_csv.wide_csv import WideCsv
from gpureport.importers.logs.host.sysstat.sadf_csv import SadfCsv
from gpureport.importers.logs.host.sysstat.sysstat_json import MpstatJson, SadfJson
from gpureport.importers.logs.host.sysstat.sysstat_text import MpstatText, Pidstat, SarText
from gpureport.importers.logs.host.top import Top
from gpureport.importers.logs.host.uprof import Uprof
from gpureport.importers.logs.host.vmstat import Vmstat
from gpureport.importers.protocol.importer import HEAD_BYTES, Extraction, ReadOptions
from gpureport.importers.text.text_log import FormExtraction

_RECORD = "record again, with a date and a time: sar -o, vmstat -t, or a CSV with a timestamp"
_OTHER = "record what is read: sar -u -r -b -P ALL, mpstat -P ALL, pidstat -u -r, vmstat -t or top -b"
FORMS: tuple[type[HostForm], ...] = (
    SadfCsv,
    SadfJson,
    MpstatJson,
    MpstatText,
    Pidstat,
    SarText,
    Vmstat,
    Top,
    Uprof,
    WideCsv,
)
"""Forms of host logs, in the order in which they are asked whether a log is theirs."""
_LINES = 100
"""First lines that are looked at; `top` and a shell may print some before."""


class HostLog:
    """The importer of host logs."""

    kind: ClassVar[str] = "host"
    title: ClassVar[str] = "host log"
    recognised_by: ClassVar[str] = (
        "The first lines of sar, sadf, mpstat, pidstat, vmstat, top or AMDuProf, or a CSV with a time "
        "and the load of a CPU."
    )
    sample: ClassVar[str] = "cpu_bound/host.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether the first lines are those of any form."""
        return HostCsv().identify(head) or _form(head) is not None

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a host log.

        Raises:
            SourceError: when it is of no known form.
        """
        head = text_head(file.again(), HEAD_BYTES)
        if HostCsv().identify(head):
            return HostCsv().extract(file, options)
        form = _form(head)
        if form is None:
            raise SourceError(
                str(file.path),
                "not a known host log",
                "copy it again: it changed while it was read",
                code="not_a_host_log",
            )
        return HostExtraction(file, options, form)


def _form(head: bytes) -> type[HostForm] | None:
    lines = [line.rstrip("\r") for line in head_text(head).split("\n", _LINES)[:_LINES] if line.strip()]
    return next((form for form in FORMS if form.identify(lines)), None)


class HostExtraction(FormExtraction):
    """One host log being read by a form."""

    def __init__(self, file: RawFile, options: ReadOptions, form: type[HostForm]) -> None:
        super().__init__(file, ReadOptions(tz=options.tz), partial(form, options.around))

    def _nothing(self) -> CodedProblem:
        rejected = self._tally.rejected
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in rejected.items())
        what = f"none of its {self._tally.lines} lines ({self._form.name}) holds a value of a machine"
        return what + (f" ({reasons})" if reasons else ""), _RECORD if reasons else _OTHER, "no_usable_row"
