"""The importer of host logs: finds the form by its content."""

from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import head as text_head
from gpureport.importers.decoding.pieces import head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.host.host_extraction import HostExtraction, HostForm
from gpureport.importers.logs.host.recorder_csv.csv_log import HostCsv
from gpureport.importers.logs.host.recorder_csv.wide_csv import WideCsv
from gpureport.importers.logs.host.sysstat.mpstat_json import MpstatJson
from gpureport.importers.logs.host.sysstat.mpstat_text import MpstatText
from gpureport.importers.logs.host.sysstat.pidstat import Pidstat
from gpureport.importers.logs.host.sysstat.sadf_csv import SadfCsv
from gpureport.importers.logs.host.sysstat.sadf_json import SadfJson
from gpureport.importers.logs.host.sysstat.sar_text import SarText
from gpureport.importers.logs.host.top import Top
from gpureport.importers.logs.host.uprof import Uprof
from gpureport.importers.logs.host.vmstat import Vmstat
from gpureport.importers.protocol.importer import HEAD_BYTES, Extraction, ReadOptions

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

    def extract(self, file: RawFile, placement: ReadOptions) -> Extraction:
        """Begin to read a host log.

        Raises:
            SourceError: when it is of no known form.
        """
        head = text_head(file.again(), HEAD_BYTES)
        if HostCsv().identify(head):
            return HostCsv().extract(file, placement)
        form = _form(head)
        if form is None:
            raise SourceError(str(file.path), "not a known host log", "copy it again: it changed while it was read")
        return HostExtraction(file, placement, form)


def _form(head: bytes) -> type[HostForm] | None:
    lines = [line.rstrip("\r") for line in head_text(head).split("\n", _LINES)[:_LINES] if line.strip()]
    return next((form for form in FORMS if form.identify(lines)), None)
