"""How the text of a log is written down changes nothing of it: line ends, encodings, compression, quotes."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import GpureportError
from tests.readers import pairs
from tests.support.logs import COMPRESSED, PACKED, log, read_text

Change = Callable[[bytes], bytes]
CHANGES: dict[str, Change] = {
    **{name: PACKED[name] for name in COMPRESSED},
    "two members": lambda text: PACKED["gzip"](text[:100]) + PACKED["gzip"](text[100:]),
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "CR": lambda text: text.replace(b"\n", b"\r"),
    "mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "UTF-16 of Windows": lambda text: text.decode().replace("\n", "\r\n").encode("utf-16"),
}
"""What leaves the text as it is."""
SENSITIVE = ("accounting", "training", "mapped", "decoding")
"""Sources whose pairs hold other files, or are written down in an own way."""


def plain_pairs() -> list[Path]:
    found = [pair for pair in pairs.list_pairs() if pair.is_file() and pair.parent.name not in SENSITIVE]
    return [pair for pair in found if is_plain(pair.read_bytes())]


def is_plain(content: bytes) -> bool:
    odd = any(sign in content for sign in (b"\0", b"\r", b"\x1b"))
    return content.endswith(b"\n") and content.isascii() and not odd


def described(content: bytes, stated: dict[str, object], folder: Path) -> object:
    folder.mkdir()
    pair = folder / "log.txt"
    pair.write_bytes(content)
    (folder / "log.json").write_text(json.dumps(stated), encoding="utf-8")
    (folder / "read").mkdir()
    return json.loads(pairs.describe(pair, folder / "read"))


@pytest.mark.parametrize("source", sorted({pair.parent.name for pair in plain_pairs()}))
def test_how_a_log_is_written_down_changes_nothing(source: str, tmp_path: Path) -> None:
    for pair in (pair for pair in plain_pairs() if pair.parent.name == source):
        expected = json.loads(pairs.expectation(pair).read_text(encoding="utf-8"))
        chance = int(hashlib.sha256(pair.name.encode()).hexdigest(), 16)
        name = list(CHANGES)[chance % len(CHANGES)]
        found = described(CHANGES[name](pair.read_bytes()), expected, tmp_path / pair.stem)
        assert found == expected, f"{pair.name} as {name}"


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_leaves_a_log_as_it_is(name: str, tmp_path: Path) -> None:
    plain = read_text(tmp_path / "plain", log(30, gpus=2))
    changed = read_text(tmp_path / "changed", CHANGES[name](log(30, gpus=2).encode()))
    assert changed.series.equals(plain.series)
    assert (changed.run.quality, changed.run.devices) == (plain.run.quality, plain.run.devices)


@pytest.mark.parametrize("packed", COMPRESSED)
def test_of_a_compressed_log_that_is_cut_the_beginning_is_read(packed: str, tmp_path: Path) -> None:
    text = log(3000).encode()
    half = text.index(b"\n", len(text) // 2) + 1
    whole = read_text(tmp_path, text).series.column("timestamp").to_pylist()
    content = PACKED[packed](text[:half]) + PACKED[packed](text[half:])
    for share in (0.05, 0.3, 0.6, 0.9, 0.999):
        # some methods give nothing of a block that is not whole
        at = int(share * len(content))
        if share > 0.5 or packed == "gzip":
            recording = read_text(tmp_path, content[:at])
            pairs.check_account(recording)
            assert recording.run.quality.notes, share
            assert recording.series.column("timestamp").to_pylist() == whole[: len(recording.series)], share
            assert len(recording.series) > 1400 or share < 0.5, share
        try:
            pairs.check_account(read_text(tmp_path, content[:at] + b"rubbish" + content[at + 7 :]))
        except GpureportError:
            assert share < 0.5


def test_rubbish_after_a_compressed_log_is_noted(tmp_path: Path) -> None:
    recording = read_text(tmp_path, PACKED["gzip"](log(30).encode()) + b"rubbish")
    assert (len(recording.series), len(recording.run.quality.notes)) == (30, 1)


def test_archives_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as packed:
        packed.writestr("gpu.csv", log(30))
    with pytest.raises(GpureportError):
        gpureport.read(tmp_path / "log.zip")


def test_a_line_without_end_is_shortened(tmp_path: Path) -> None:
    header, *rows = log(9).splitlines()
    for length, kept in ((3_000_000, 8), (500_000, 9)):
        long = [*rows[:4], rows[4].replace("NVIDIA L4", "N" * length), *rows[5:]]
        recording = read_text(tmp_path, "\n".join([header, *long, ""]))
        pairs.check_account(recording)
        assert len(recording.series) == kept, length
