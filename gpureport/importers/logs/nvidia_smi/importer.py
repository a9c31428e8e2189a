"""Recognises what nvidia-smi writes: `--query-gpu=… --format=csv`, and the forms beside it."""

from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import head, head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.extraction import QueryGpuExtraction
from gpureport.importers.logs.nvidia_smi.query.headerless import is_headerless
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect, find_headers, is_plain
from gpureport.importers.logs.nvidia_smi.query.opening import (
    iterate_lines,
    read_beginning,
    read_opening,
    take_first_lines,
)
from gpureport.importers.protocol.importer import SEARCHED_BYTES, Extraction, ReadOptions

if TYPE_CHECKING:
    from gpureport.importers.extraction import Form

_LOOKED_AT = 2**20
"""How much of a log is looked at for other forms than a CSV of queries."""


class NvidiaSmi:
    """The importer of what nvidia-smi writes."""

    kind: ClassVar[str] = "nvidia_smi"
    title: ClassVar[str] = "nvidia-smi"
    recognised_by: ClassVar[str] = (
        "A header of `--query-gpu` fields, or a line that another form of nvidia-smi begins with: dmon, "
        "pmon, `-q`, a table."
    )
    sample: ClassVar[str] = "healthy/nvidia-smi.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and what only GPUs have.

        A line that begins another form tells as well, and without a header, rows that only nvidia-smi writes.
        """
        if is_plain(head):
            return True
        text = head_text(head)
        declared = [layout for _, layout in find_headers(text, QueryGpuDialect())]
        if any(map(fields.is_gpu_layout, declared)) or _begins_a_form(text):
            return True
        return not declared and is_headerless(take_first_lines(text))

    def drop_unused_options(self, file: RawFile, options: ReadOptions) -> ReadOptions:
        """Return the options without `columns` where a header names them, and `interval` where rows have time stamps.

        Raises:
            SettingsError: when a name is no query field.
        """
        given = options.columns is not None or options.interval is not None
        if not given or (options.columns is None and _is_in_other_form(_read_beginning(file))):
            return options
        try:
            found = read_opening(str(file.path), read_beginning(file), options.columns, lambda: iterate_lines(file))
        except SourceError:
            # what is wrong with it is said when it is read
            return options
        stamped = found.stamped or (found.layout is not None and found.layout.stamp is not None)
        return replace(
            options,
            columns=options.columns if found.columns_by == "--columns" else None,
            interval=None if stamped else options.interval,
        )

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log; one that holds a table from end to end is read as such."""
        if options.columns is None and _is_in_other_form(_read_beginning(file)):
            from gpureport.importers.extraction import Extraction  # noqa: PLC0415 - as below
            from gpureport.importers.nvidia_smi.blocks import explain_no_rows, read_blocks  # noqa: PLC0415 - as below

            return Extraction(file, options, read_blocks, explain=explain_no_rows)
        return QueryGpuExtraction(file, options)


def _read_beginning(file: RawFile) -> str:
    """Return the beginning of a log; more of it where what a job printed stands above."""
    text = _take_whole_lines(head(file.again(), _LOOKED_AT))
    if len(text) < _LOOKED_AT // 2 or is_plain(text) or _find_forms(text):
        return text.decode(errors="replace")
    return _take_whole_lines(head(file.again(), SEARCHED_BYTES)).decode(errors="replace")


def _take_whole_lines(text: bytes) -> bytes:
    return text[: text.rfind(b"\n") + 1] or text


def _find_forms(text: bytes) -> "set[Form]":
    """Return the forms of which a block begins."""
    from gpureport.importers.nvidia_smi.blocks import find_forms  # noqa: PLC0415 - most logs are a CSV of queries

    return find_forms(text.decode(errors="replace"))


def _begins_a_form(text: str) -> bool:
    """Return whether a block of any form begins; XML is written by others as well."""
    from gpureport.importers.nvidia_smi.documents import read_query_xml  # noqa: PLC0415 - as above

    forms = _find_forms(_take_whole_lines(text.encode()))
    return bool(forms) and (forms != {read_query_xml} or "nvidia_smi_log" in text)


def _is_in_other_form(text: str) -> bool:
    """Return whether the beginning of a log holds rows of another form than a CSV of queries, or headings of one."""
    if is_plain(text.encode()):
        return False
    from gpureport.importers.account import Account  # noqa: PLC0415 - as above
    from gpureport.importers.nvidia_smi import blocks  # noqa: PLC0415 - as above

    if not blocks.find_forms(text) - {blocks.QUERY}:
        return False
    account = Account()
    for _ in blocks.read_blocks(StringIO(text, newline="\n"), 1, account):
        pass
    rows = account.forms
    others = [rows[form] for form in rows if form not in {blocks.TEXT, blocks.QUERY_COMMAND}]
    return any(others) or (bool(others) and not rows.get(blocks.QUERY_COMMAND))
