"""A log that is told to be a CSV of queries without a look at the forms holds none of these."""

from pathlib import Path

import pytest

from gpureport.importers.decoding.pieces import Piece, head
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.forms.blocks import Blocks
from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import is_plain

SAMPLES = Path(__file__).parents[5] / "sample_logs"
PLAIN = (
    b"timestamp, index, utilization.gpu [%], power.draw [W]\n"
    b"2026/03/14 09:00:00.001, 0, 97 %, 301.25 W\n"
    b"2026/03/14 09:00:01.001, 0, 98 %, [N/A]\n"
)


def forms(text: bytes) -> set[object]:
    """Return the forms of which a block begins."""
    piece = Piece(text, 1, last=True, lines=text.count(b"\n"))
    return {part.form for part in Blocks().parts(piece) if part.form is not None}


def test_a_csv_of_queries_is_plain() -> None:
    """A header that begins with `timestamp`, and rows below it."""
    assert is_plain(PLAIN)
    assert forms(PLAIN) == {QueryCsv}


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + b"| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15 |\n",
        PLAIN + b"# gpu   pwr gtemp mtemp    sm   mem\n",
        PLAIN + b" # gpu   pwr gtemp mtemp    sm   mem\n",
        PLAIN + b"\n==============NVSMI LOG==============\n",
        PLAIN.replace(b"index", b"pid"),
        b"timestamp, pid, process_name, used_memory [MiB]\n2026/03/14 09:00:00.001, 7, python, 8 MiB\n",
        b"timestamp, index, utilization.gpu [%]\n0, pwrDraw, 1773479213000000, 92\n",
        b"timestamp, loss\n2026/03/14 09:00:00.001, 7\n",
        PLAIN.partition(b"\n")[2],
        b"timestamp, utilization.gpu [%]\n",
        b"",
    ],
)
def test_anything_else_is_looked_at_closely(text: bytes) -> None:
    """A line that may open a block of another form, another first field, or no header at all."""
    assert not is_plain(text)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/nvidia-smi*")), ids=lambda path: f"{path.parent.name}")
def test_plain_samples_hold_no_other_form(path: Path) -> None:
    """No sample that is told to be plain begins a block of another form."""
    text = head(RawFile(path), 2**20)
    assert not is_plain(text) or forms(text) == {QueryCsv}
