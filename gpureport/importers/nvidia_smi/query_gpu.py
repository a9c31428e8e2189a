"""Recognises `nvidia-smi --query-gpu=… --format=csv` logs: any columns, in any order, with a header or without."""

from typing import ClassVar

from gpureport.importers.base import Placement
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.pieces import head_text
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.extraction import METRICS, QueryGpuExtraction
from gpureport.importers.nvidia_smi.guess import headerless
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect
from gpureport.importers.nvidia_smi.opening import LINES
from gpureport.importers.raw import RawFile


class NvidiaSmi:
    """The importer of nvidia-smi query logs."""

    kind: ClassVar[str] = "nvidia_smi"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and what only GPUs have.

        Without a header, rows that only nvidia-smi writes tell as well.
        """
        lines = [line.strip() for line in head_text(head).splitlines()]
        layouts = [layout for line in lines if (layout := QueryGpuDialect().header(line)) is not None]
        if any(layout.holds(METRICS) or _of_gpus(layout) for layout in layouts):
            return True
        return not layouts and headerless([line for line in lines if line][:LINES])

    def extract(self, file: RawFile, placement: Placement) -> QueryGpuExtraction:
        """Begin to read a log."""
        return QueryGpuExtraction(file, placement)


def _of_gpus(layout: Layout) -> bool:
    """Return whether a header without a metric is one of nvidia-smi: `index` and `name` are columns of any table."""
    return layout.stamp is not None and any(map(fields.telling, layout.columns))
