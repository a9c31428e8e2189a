"""Why no row of a query log can be used, and what to do about it."""

from itertools import islice

from gpureport.errors import CodedProblem
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.opening import iterate_lines
from gpureport.importers.note_text import format_count
from gpureport.importers.protocol.reject_reasons import MALFORMED, NOT_SELECTED
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start

_SHOWN = 24
"""Characters of a line that a message quotes."""
_UNIT = "say in its header whether utilization.gpu [1] or utilization.gpu [%] is meant"
_TIMES = {"time", "datetime", "date_time", "time_stamp", "date", "epoch", "unix_time", "ts"}
"""What people call a column of times."""
_INTERVAL = "say with --interval how many seconds apart it was recorded, as given to -l"


def explain_unusable_columns(
    layout: Layout, *, stamped: bool, counted_times: bool, fractions: bool
) -> CodedProblem | None:
    """Return why rows of a layout cannot be used, None when they can.

    Args:
        layout: their columns.
        stamped: whether the log has time stamps.
        counted_times: whether a person said how far apart rows without time stamps are.
        fractions: whether columns are kept as text that may hold fractions.
    """
    names = ", ".join(column.source for column in layout.columns)
    if not layout.holds(fields.METRICS):
        return f"no GPU metric among the columns {names}", _UNIT if fractions else RECORDS_ONE, "no_gpu_metric"
    if layout.stamp is None and (not counted_times or stamped):
        time = next((each.source for each in layout.columns if each.source.lower() in _TIMES), "")
        hint = f"if {time} holds the time, call it timestamp in the header; else {_INTERVAL}" if time else _INTERVAL
        return f"no timestamp column among {names}", hint, "no_timestamps"
    if layout.stamp is not None and not stamped:
        return "time stamps below rows without any", "split the log where its columns change", "columns_change"
    return None


def explain_no_rows(file: RawFile, tally: Tally, indices: list[int]) -> CodedProblem:
    """Return why no row is left.

    Args:
        file: the log.
        tally: what became of its lines.
        indices: indices of its GPUs.
    """
    reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in tally.rejected.items())
    if set(tally.rejected) == {NOT_SELECTED}:
        return "it holds none of the GPUs selected", f"--gpus can name {', '.join(map(str, indices))}", "gpus_not_held"
    rejected = sum(rows for rows, _ in tally.rejected.values())
    unread, line = tally.rejected.get(f"{MALFORMED} timestamp", (0, 0))
    if 2 * unread > rejected:
        return _explain_unread_stamps(file, line)
    if tally.lines == tally.headers:
        return "it holds a header and no row", RECORDS_ONE, "no_row"
    ((header, row), lines), *_ = tally.misaligned.most_common(1) or [((0, 0), 0)]
    if 2 * lines > rejected:
        names = "its header names" if tally.headers else "--columns names"
        which = f"{format_count(header, 'column')} and its rows hold {format_count(row, 'cell')}"
        what = f"{names} {which}, so which is which cannot be told"
        return what, "name the columns of its rows with --columns", "wrong_number_of_cells"
    what = "its only line is no row that can be used"
    if tally.lines > 1:
        what = f"none of its {tally.lines} lines is a row that can be used"
    return what + (f" ({reasons})" if reasons else ""), RECORDS_ONE, "no_usable_row"


def _explain_unread_stamps(file: RawFile, line: int) -> CodedProblem:
    """Return that time stamps cannot be read; `line` is the first of them."""
    text = redact_start(next(islice(iterate_lines(file), line - 1, None), "").strip(), _SHOWN)
    what = f"its time stamps are none that nvidia-smi writes (line {line} begins {text!r})"
    return what, "--source-kind mapped prints a map in which their format can be said", "unread_time_stamps"
