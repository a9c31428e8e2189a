"""Headings that people write themselves over the values of nvidia-smi, in nvidia-smi's own words.

Only what cannot mean anything else is taken: `gpu_util%`, `mem_used_MB`, `temp_C`. Scripts that wrap nvidia-smi
with `nounits` write such headings.
"""

from dataclasses import replace

from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.values.cells import Column
from gpureport.importers.values.column_names import GPU_COLUMNS, INDEX, MODEL, recognise_column
from gpureport.importers.values.heading_words import heading_words
from gpureport.metrics import BY_NAME

_IDENTITY_FIELDS = {INDEX: "index", MODEL: "name"}


def find_query_field(heading: str) -> str | None:
    """Return a hand-written heading as nvidia-smi would have it, None when it is none that is known."""
    column_name = recognise_column(heading, GPU_COLUMNS)
    if column_name is None:
        return None
    field = _IDENTITY_FIELDS.get(column_name.target) or BY_NAME[column_name.target].recorded_by
    return f"{field} [{column_name.unit}]" if column_name.unit else field


def read_heading(heading: str) -> Column | None:
    """Return how the column under a heading is read, hand-written or not; None when the text is no heading."""
    own = fields.parse_query_field(heading)
    if own is not None and not own.target.startswith("extra_"):
        return own
    name = find_query_field(heading)
    written = None if name is None else fields.parse_query_field(name)
    return own if written is None else replace(written, heading=heading.strip(), translated=True)


def is_gpu_heading(heading: str) -> bool:
    """Return whether a hand-written heading names a GPU or its load, not just any power or temperature."""
    return find_query_field(heading) is not None and not {"gpu", "utilization", "sm"}.isdisjoint(heading_words(heading))
