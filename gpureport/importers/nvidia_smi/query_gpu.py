"""Recognises what nvidia-smi writes: `--query-gpu=… --format=csv`, and the forms beside it."""

from typing import ClassVar

from gpureport.importers.base import Extraction, Placement
from gpureport.importers.delimited.pieces import Piece, head, head_text
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.extraction import QueryGpuExtraction
from gpureport.importers.nvidia_smi.forms.blocks import Blocks, opener
from gpureport.importers.nvidia_smi.forms.extraction import FormsExtraction
from gpureport.importers.nvidia_smi.forms.mixed import TEXT, Mixed
from gpureport.importers.nvidia_smi.forms.query_csv import QueryCsv
from gpureport.importers.nvidia_smi.guess import headerless
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect
from gpureport.importers.nvidia_smi.opening import LINES
from gpureport.importers.raw import RawFile

_LOOKED_AT = 2**20
"""How much of a log is looked at for other forms than a CSV of queries."""


class NvidiaSmi:
    """The importer of what nvidia-smi writes."""

    kind: ClassVar[str] = "nvidia_smi"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and what only GPUs have.

        A line that begins another form tells as well, and without a header, rows that only nvidia-smi writes.
        """
        written = head_text(head).splitlines()
        lines = [line.strip() for line in written]
        layouts = [layout for line in lines if (layout := QueryGpuDialect().header(line)) is not None]
        if any(map(fields.of_gpus, layouts)) or any(map(opener, written)):
            return True
        return not layouts and headerless([line for line in lines if line][:LINES])

    def extract(self, file: RawFile, placement: Placement) -> Extraction:
        """Begin to read a log; one that holds a table from end to end is read as such."""
        if placement.columns is None and _in_forms(head(file.again(), _LOOKED_AT)):
            return FormsExtraction(file, placement)
        return QueryGpuExtraction(file, placement)


def _in_forms(text: bytes) -> bool:
    """Return whether the beginning of a log holds rows of another form than a CSV of queries, or headings of one."""
    whole = text[: text.rfind(b"\n") + 1] or text
    piece = Piece(whole, 1, last=True, lines=whole.count(b"\n"))
    if not {part.form for part in Blocks().parts(piece)} - {None, QueryCsv}:
        return False
    mixed = Mixed()
    for _ in mixed.chunks([piece]):
        pass
    others = [block.rows for block in mixed.blocks if block.form not in {TEXT, QueryCsv.name}]
    queries = [block.rows for block in mixed.blocks if block.form == QueryCsv.name]
    return any(others) or (bool(others) and not any(queries))
