"""Recognises what DCGM records, and picks the form it is written in."""

from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import head as text_head
from gpureport.importers.decoding.pieces import head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.dcgm import dmon, field_csv, prometheus
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.text.text_log import Form, FormExtraction
from gpureport.limits import LONGEST_LINE

_LINES = 20


class Dcgm:
    """The importer of what DCGM records."""

    kind: ClassVar[str] = "dcgm"
    title: ClassVar[str] = "DCGM"
    recognised_by: ClassVar[str] = (
        "A heading of `dcgmi dmon`, a CSV of DCGM fields, or an answer of Prometheus with metrics of dcgm-exporter."
    )
    sample: ClassVar[str] = "dcgm/dcgmi-dmon.txt"

    def identify(self, head: bytes) -> bool:
        """Return whether a text is of DCGM: a form that is read, or a snapshot that is refused in words."""
        text = head_text(head)
        return _form(text) is not None or prometheus.is_snapshot(text)

    def extract(self, file: RawFile, options: ReadOptions) -> FormExtraction:
        """Begin to read a log.

        Raises:
            SourceError: when it is a snapshot without a time, or nothing of DCGM though a person says so.
        """
        text = text_head(file.again(), HEAD_BYTES).decode(errors="replace")
        form = _form(text)
        if form is None and not prometheus.is_snapshot(text):
            what = "no header of dcgmi dmon, no table of DCGM's fields and no answer of Prometheus at its beginning"
            raise SourceError(
                str(file.path), what, "leave out --source-kind, or give a log of DCGM", code="not_of_this_kind"
            )
        if form is None:
            what = "what dcgm-exporter shows at one moment, without a time"
            hint = "let Prometheus scrape it, and give the answer of /api/v1/query_range"
            raise SourceError(str(file.path), what, hint, code="no_timestamps")
        # Prometheus answers in one line
        longest = 2 * prometheus.MOST if form is prometheus.PrometheusForm else LONGEST_LINE
        return FormExtraction(file, options, form, longest)


def _form(text: str) -> type[Form] | None:
    if prometheus.is_prometheus_answer(text):
        return prometheus.PrometheusForm
    lines = [line for line in text.splitlines() if line.strip()][:_LINES]
    if any(dmon.is_header(line) for line in lines):
        return dmon.DmonForm
    return field_csv.FieldCsvForm if field_csv.has_header(lines) else None
