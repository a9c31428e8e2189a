"""Recognises what nvidia-smi writes: `--query-gpu=… --format=csv`, and the forms beside it."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece, head, head_text
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
    from gpureport.importers.logs.nvidia_smi.forms.form import BlockForm

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
            from gpureport.importers.logs.nvidia_smi.forms.extraction import MixedFormsExtraction  # noqa: PLC0415 - as below

            return MixedFormsExtraction(file, options)
        return QueryGpuExtraction(file, options)


def _read_beginning(file: RawFile) -> Piece:
    """Return the beginning of a log; more of it where what a job printed stands above."""
    piece = _take_whole_lines(head(file.again(), _LOOKED_AT))
    if len(piece.data) < _LOOKED_AT // 2 or is_plain(piece.data) or _find_forms(piece):
        return piece
    return _take_whole_lines(head(file.again(), SEARCHED_BYTES))


def _take_whole_lines(text: bytes) -> Piece:
    """Return the whole lines of a text."""
    whole = text[: text.rfind(b"\n") + 1] or text
    return Piece(whole, 1, last=True, lines=whole.count(b"\n"))


def _find_forms(piece: Piece) -> "set[type[BlockForm]]":
    """Return the forms of which a block begins."""
    from gpureport.importers.logs.nvidia_smi.forms.blocks import Blocks  # noqa: PLC0415 - most logs are a CSV of queries

    return {part.form for part in Blocks().parts(piece) if part.form is not None}


def _begins_a_form(text: str) -> bool:
    """Return whether a block of any form begins; XML is written by others as well."""
    from gpureport.importers.logs.nvidia_smi.forms.full_query.q_xml import QueryXml  # noqa: PLC0415 - as above

    forms = _find_forms(_take_whole_lines(text.encode()))
    return bool(forms) and (forms != {QueryXml} or "nvidia_smi_log" in text)


def _is_in_other_form(piece: Piece) -> bool:
    """Return whether the beginning of a log holds rows of another form than a CSV of queries, or headings of one."""
    if is_plain(piece.data):
        return False
    from gpureport.importers.logs.nvidia_smi.forms.mixed_forms import TEXT, MixedForms  # noqa: PLC0415 - as above
    from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv  # noqa: PLC0415 - as above

    if not _find_forms(piece) - {QueryCsv}:
        return False
    mixed = MixedForms()
    for _ in mixed.chunks([piece]):
        pass
    others = [rows for form, rows in mixed.rows.items() if form not in {TEXT, QueryCsv.name}]
    return any(others) or (bool(others) and not mixed.rows[QueryCsv.name])
