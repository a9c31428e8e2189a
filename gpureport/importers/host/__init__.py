"""Logs of the machine the GPUs sit in: `forms` reads what tools print, `recorder_csv` what a script wrote.

`fields` holds what their columns mean, and makes the tables of a log one row a time.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import Rows
from gpureport.importers.extraction import Extraction
from gpureport.importers.host import forms, recorder_csv
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.source_text import RawFile, head_text
from gpureport.importers.source_text import head as text_head

_RECORD = "record again, with a date and a time: sar -o, vmstat -t, or a CSV with a timestamp"
_OTHER = "record what is read: sar -u -r -b -P ALL, mpstat -P ALL, pidstat -u -r, vmstat -t or top -b"
Form = tuple[str, Callable[[Sequence[str]], object], Callable[..., Iterator[Rows]]]
_FORMS: tuple[Form, ...] = (
    ("sadf -d", lambda lines: any(map(forms.SADF.match, lines)), forms.read_sadf),
    ("JSON of sysstat", forms.is_json, forms.read_sysstat_json),
    ("sar, mpstat or pidstat", forms.is_sysstat, forms.read_sysstat),
    ("vmstat", lambda lines: any(forms.find_vmstat_names(line.split()) for line in lines), forms.read_vmstat),
    ("top -b", lambda lines: any(map(forms.TOP.match, lines)), forms.read_top),
    ("AMDuProf timechart", lambda lines: lines[0].startswith("AMDPROFILER"), forms.read_uprof),
    ("a CSV", lambda lines: recorder_csv.find_layout(lines[0]), recorder_csv.read_recorder_csv),
)
"""What a person calls a form, what recognises its first lines that are not blank, and what reads it."""
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
        return _find_form(head) is not None

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a host log.

        Raises:
            SourceError: when it is of no known form.
        """
        form = _find_form(text_head(file.again(), HEAD_BYTES))
        if form is None:
            hint = "copy it again: it changed while it was read"
            raise SourceError(str(file.path), "not a known host log", hint, code="not_a_host_log")
        read = partial(form[2], around=options.around)
        return Extraction(file, ReadOptions(tz=options.tz), read, name=form[0], explain=partial(_explain, form[0]))


def _find_form(head: bytes) -> Form | None:
    lines = [line.rstrip("\r") for line in head_text(head).split("\n", _LINES)[:_LINES] if line.strip()]
    return next((form for form in _FORMS if lines and form[1](lines)), None)


def _explain(form: str, account: Account) -> CodedProblem:
    """Return why no row is left, and what to do."""
    reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in account.rejected.items())
    what = f"none of its {account.lines} lines ({form}) holds a value of a machine"
    return what + (f" ({reasons})" if reasons else ""), _RECORD if reasons else _OTHER, "no_usable_row"
