"""Recognises what nvidia-smi writes: CSV of `--query-gpu`, and the forms beside it."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.extraction import Extraction
from gpureport.importers.nvidia_smi.headers import find_headers, is_headerless, is_of_gpus, is_plain
from gpureport.importers.nvidia_smi.query import NAME, Opening, Query, read_opening, take_first_lines
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES, ReadOptions
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import Text, head, head_text
from gpureport.importers.tables import Layout

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
        text = head_text(head)
        if is_plain(text):
            return True
        declared = [layout for _, layout in find_headers(text)]
        if any(map(is_of_gpus, declared)) or _begins_a_form(text[: text.rfind("\n") + 1] or text):
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
            found = _open(file, options)
        except SourceError:
            # what is wrong with it is said when it is read
            return options
        columns = options.columns if found.by_option else None
        return replace(options, columns=columns, interval=None if found.stamped else options.interval)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log; one that holds a table from end to end is read as such."""
        if options.columns is None and _is_in_other_form(_read_beginning(file)):
            from gpureport.importers.nvidia_smi.blocks import explain_no_rows, read_blocks  # noqa: PLC0415 - as below

            return Extraction(file, options, read_blocks, explain=explain_no_rows)
        query = Query(_open(file, options), options.gpus_per_tick, options.interval is not None, str(file.path))
        return Extraction(file, options, query.read, name=NAME, explain=query.explain)


def _open(file: RawFile, options: ReadOptions) -> Opening:
    """Return how the lines of a log are read."""
    text = head(file.again(), HEAD_BYTES).decode(errors="replace")
    if len(text) >= HEAD_BYTES and next(find_headers(text), None) is None and not is_headerless(take_first_lines(text)):
        searched = head(file.again(), SEARCHED_BYTES).decode(errors="replace")
        place = next((place for place, _ in find_headers(searched, text.rfind("\n") + 1)), None)
        text = text if place is None else searched[: place + HEAD_BYTES]

    def headers_below() -> Iterator[Layout]:
        for chunk, _ in Text(file.again()).chunks():
            yield from (header for _, header in find_headers(chunk))

    return read_opening(str(file.path), text, options.columns, headers_below)


def _read_beginning(file: RawFile) -> str:
    """Return the beginning of a log; more of it where what a job printed stands above."""
    text = _whole_lines(head(file.again(), _LOOKED_AT))
    if len(text) < _LOOKED_AT // 2 or is_plain(text) or _begins_a_form(text):
        return text
    return _whole_lines(head(file.again(), SEARCHED_BYTES))


def _whole_lines(text: bytes) -> str:
    return (text[: text.rfind(b"\n") + 1] or text).decode(errors="replace")


def _begins_a_form(text: str) -> bool:
    """Return whether a block of any form begins; XML is written by others as well."""
    from gpureport.importers.nvidia_smi.blocks import find_forms  # noqa: PLC0415 - most logs are a CSV of queries
    from gpureport.importers.nvidia_smi.documents import read_query_xml  # noqa: PLC0415 - as above

    forms = find_forms(text)
    return bool(forms) and (forms != {read_query_xml} or "nvidia_smi_log" in text)


def _is_in_other_form(text: str) -> bool:
    """Return whether the beginning of a log holds rows of another form than a CSV of queries, or headings of one."""
    if is_plain(text):
        return False
    from gpureport.importers.nvidia_smi import blocks  # noqa: PLC0415 - as above

    if not blocks.find_forms(text) - {blocks.QUERY}:
        return False
    account = Account()
    for _ in blocks.read_blocks(StringIO(text, newline="\n"), 1, account):
        pass
    rows = account.forms
    others = [rows[form] for form in rows if form not in {blocks.TEXT, NAME}]
    return any(others) or (bool(others) and not rows.get(NAME))
