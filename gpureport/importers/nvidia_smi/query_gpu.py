"""Recognises `nvidia-smi --query-gpu=… --format=csv` logs: any columns, in any order, with a header or without."""

from typing import ClassVar

from gpureport.importers.base import Placement
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.pieces import head_text
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.beginning import first_lines
from gpureport.importers.nvidia_smi.extraction import METRICS, QueryGpuExtraction
from gpureport.importers.nvidia_smi.guess import headerless
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect, headers
from gpureport.importers.raw import RawFile


class NvidiaSmi:
    """The importer of nvidia-smi query logs."""

    kind: ClassVar[str] = "nvidia_smi"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and what only GPUs have.

        Without a header, rows that only nvidia-smi writes tell as well.
        """
        text = head_text(head)
        declared = [layout for _, layout in headers(text, QueryGpuDialect())]
        if any(layout.holds(METRICS) or _of_gpus(layout) for layout in declared):
            return True
        return not declared and headerless(first_lines(text))

    def extract(self, file: RawFile, placement: Placement) -> QueryGpuExtraction:
        """Begin to read a log."""
        return QueryGpuExtraction(file, placement)


def _of_gpus(layout: Layout) -> bool:
    """Return whether a header without a metric is one of nvidia-smi: `index` and `name` are columns of any table."""
    return layout.stamp is not None and any(map(fields.telling, layout.columns))
