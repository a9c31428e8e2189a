"""Recognises what nvidia-smi writes: CSV of `--query-gpu`, and the forms beside it."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.extraction import Extraction
from gpureport.importers.nvidia_smi.headers import find_headers, is_headerless, is_of_gpus, is_plain
from gpureport.importers.nvidia_smi.query import NAME, explain_no_rows, read_opening, read_query, split_lines
from gpureport.importers.protocol.importer import SEARCHED_BYTES, ReadOptions
from gpureport.importers.source_text import RawFile, head, head_text

_LOOKED_AT = 2**20
"""How much of a log is looked at; more of it where what a job printed stands above."""


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
        text = head_text(head)
        if is_plain(text):
            return True
        declared = [layout for _, layout in find_headers(text)]
        if any(map(is_of_gpus, declared)) or _begins_other_form(text[: text.rfind("\n") + 1] or text):
            return True
        return not declared and is_headerless(split_lines(text))

    def drop_unused_options(self, file: RawFile, options: ReadOptions) -> ReadOptions:
        """Return the options without `columns` where a header names them, and `interval` where rows have time stamps.

        Raises:
            SettingsError: when a name is no query field.
        """
        if options.columns is None and options.interval is None:
            return options
        text = _read_beginning(file)
        if options.columns is None and _begins_other_form(text):
            return options
        try:
            found = read_opening(str(file.path), text, options.columns)
        except SourceError:
            # what is wrong with it is said when it is read
            return options
        columns = options.columns if found.by_option else None
        return replace(options, columns=columns, interval=None if found.stamped else options.interval)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log; one that holds a table from end to end is read as such."""
        text = _read_beginning(file)
        if options.columns is None and _begins_other_form(text):
            from gpureport.importers.nvidia_smi import blocks  # noqa: PLC0415 - as below

            return Extraction(file, options, blocks.read_blocks, explain=blocks.explain_no_rows)
        opening = read_opening(str(file.path), text, options.columns)
        opening = opening._replace(dated=options.interval is None)
        form = partial(read_query, opening=opening, per_tick=options.gpus_per_tick)
        return Extraction(file, options, form, name=NAME, explain=explain_no_rows)


def _read_beginning(file: RawFile) -> str:
    """Return the beginning of a log; more of it where what a job printed stands above."""
    for length in (_LOOKED_AT, SEARCHED_BYTES):
        data = head(file.again(), length)
        text = (data[: data.rfind(b"\n") + 1] or data).decode(errors="replace")
        if len(data) < length or next(find_headers(text), None) is not None or _begins_other_form(text):
            break
    return text


def _begins_other_form(text: str) -> bool:
    """Return whether a block of another form than a CSV of queries begins; XML is written by others as well."""
    if is_plain(text):
        return False
    from gpureport.importers.nvidia_smi import blocks, documents  # noqa: PLC0415 - most logs are a CSV of queries

    forms = blocks.find_forms(text) - {read_query}
    return bool(forms) and (forms != {documents.read_query_xml} or "nvidia_smi_log" in text)
