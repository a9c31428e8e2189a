"""A long log is read in pieces; where they end must not show, whatever stands there."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.importers.accounts import kept, lines
from tests.importers.written_logs import HEADER, read_text, row, stamp
from tests.quick_share import keep_quick

ROWS = [row(second, gpu, util=(second * 37 + gpu) % 101) for second in range(160) for gpu in (0, 1)]
PLACE = 200
"""A row far behind the first block that is read, which may be longer than a piece."""
OTHER = "timestamp, index, power.draw [W], utilization.gpu [%]"
LATER = [f"{stamp(160 + second)}, 0, 20.00 W, {second} %" for second in range(60)]


def changed(change: Callable[[str], str]) -> bytes:
    """Return the log with one row changed."""
    return lines(HEADER, *ROWS[:PLACE], change(ROWS[PLACE]), *ROWS[PLACE + 1 :]).encode()


def inserted(*more: str) -> bytes:
    """Return the log with lines put between two rows."""
    return lines(HEADER, *ROWS[:PLACE], *more, *ROWS[PLACE:]).encode()


WHOLE = inserted()
ANONYMOUS = [f"{stamp(tick + gpu / 1000)}, {10 * gpu + tick % 9} %" for tick in range(160) for gpu in range(4)]
UUID = "GPU-8b2f1f0a-1c2d-4e3f-8a9b-0123456789ab"
DAMAGE = {
    "a stray line": inserted("garbage"),
    "a header again": inserted(HEADER),
    "another header": lines(HEADER, *ROWS, OTHER, *LATER).encode(),
    "two headers in turn": lines(HEADER, *ROWS, *(line for each in LATER for line in (OTHER, each, HEADER))).encode(),
    "a header glued to a cut line": lines(HEADER, *ROWS[:-1], ROWS[-1][:40] + OTHER, *LATER).encode(),
    "messages": inserted(
        "No devices were found", "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost."
    ),
    "blank lines": inserted("", "   ", ""),
    "a torn name": changed(lambda text: text.replace("NVIDIA L4", "NVIDNVIDIA L4")),
    "a torn last cell": changed(lambda text: text.replace("250.00 W", "25")),
    "a torn number": changed(lambda text: text.replace(" %", "90 %")),
    "a line torn onto another": changed(lambda text: text[:30] + text),
    "cells in front": changed(lambda text: "a,b," + text),
    "an absent cell": changed(lambda text: text.replace("250.00 W", "[N/A]")),
    "a lost GPU": changed(lambda text: text.replace("250.00 W", "[GPU is lost]")),
    "a GPU not named": changed(lambda text: text.replace(", 0, ", ", [N/A], ")),
    "no text": changed(lambda text: text.replace("L4", "Ger\xe4t")).replace("\xe4".encode(), b"\xe4"),
    "zeros in a line": changed(lambda text: text[:30] + "\0" * 500 + text[30:]),
    "zeros between lines": changed(lambda text: "\0" * 3000 + text),
    "a byte order mark": changed(lambda text: "\ufeff" + text),
    "other line ends": WHOLE[:11_000] + WHOLE[11_000:].replace(b"\n", b"\r\n"),
    "lone carriage returns": WHOLE.replace(b"\n", b"\r"),
    "UTF-16": WHOLE.decode().encode("utf-16"),
    "a cut": WHOLE[:-15],
    "a cut gzip with zeros": gzip.compress(changed(lambda text: "\0" * 500 + text))[:-40],
    "a clock set back": lines(HEADER, *ROWS[:PLACE], *(row(70 + second, 0) for second in range(60))).encode(),
    "a copy": WHOLE + WHOLE,
    "a copy of a cut log": WHOLE[:-1] + WHOLE,
    "a torn uuid": lines(
        "timestamp, uuid, utilization.gpu [%]",
        *(f"{stamp(at)}, {'GPU-8b2f' * (at == PLACE)}{UUID}, 5 %" for at in range(400)),
    ).encode(),
    "a GPU that comes late": lines(HEADER, *ROWS[:PLACE:2], *ROWS[PLACE:]).encode(),
    "ticks": lines("timestamp, utilization.gpu [%]", *ANONYMOUS).encode(),
    "a tick without a row": lines("timestamp, utilization.gpu [%]", *ANONYMOUS[:402], *ANONYMOUS[403:]).encode(),
}


@pytest.mark.parametrize("damage", keep_quick(DAMAGE, 3))
def test_a_border_at_any_damage_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """Read in pieces of any size, a log gives the series and the account it gives as one."""
    whole = read_text(tmp_path, DAMAGE[damage])
    assert kept(whole) > 100
    for size in range(1500, 2300, 71):
        monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (size,))
        pieced = read_text(tmp_path, DAMAGE[damage])
        assert pieced.series.equals(whole.series)
        # ticks are counted in the first piece alone
        assert pieced.run == whole.run or "tick" in damage


def test_a_message_at_the_start_of_a_piece_has_the_time_of_the_row_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no line of the piece before was odd."""
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (1,))
    recording = read_text(tmp_path, DAMAGE["messages"])
    assert [event.at - recording.run.started for event in recording.run.quality.log_events if event.at] == [
        99_000_000
    ] * 2
