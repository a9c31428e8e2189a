"""What a person types as a place, what may be written, and what is left of killed writers."""

import os
from pathlib import Path

import pytest

from gpureport.errors import PlaceError
from gpureport.places import describe_bucket_error
from tests.support.logs import log, write
from tests.support.program import Program
from tests.support.tables import read_table


def test_clouds_have_codes_and_accounts(gpureport: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for line, code in read_table(Path(__file__).with_name("bucket_errors.tsv")):
        text = line.replace("\\n", "\n")
        for scheme in ("s3", "gs", "az"):
            error = describe_bucket_error(f"{scheme}://b/x", scheme, OSError(text))
            assert (type(error), error.code, error.where) == (PlaceError, code, f"{scheme}://b/x"), text
            assert "\n" not in str(error)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    done = gpureport("analyze", "az://container/gpu.csv")
    assert (done.code, "AZURE_STORAGE_ACCOUNT" in done.err) == (3, True)


@pytest.mark.parametrize(("place", "marker", "text"), read_table(Path(__file__).with_name("open_folders.tsv")))
def test_folders_of_others_are_open(gpureport: Program, tmp_path: Path, place: str, marker: str, text: str) -> None:
    write(tmp_path, gpu=log())
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / "place" / marker).write_text(text)
    assert gpureport("report", "gpu.csv", "-o", f"{place}/r.json").code == 0


def test_own_leftovers_are_swept(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, gpu=log())
    swept = (".tmp-r.json-1-abcd0123",)
    kept = (".tmp-r.json-mine", ".tmp-r.json-1-abcd0123.txt", ".tmp-rxjson-1-abcd0123", ".tmp-s.json-1-abcd0123")
    for name in (*swept, *kept, fresh := ".tmp-r.json-1-00000000"):
        (tmp_path / name).write_text("half")
        if name != fresh:
            os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".tmp-r.json-1-11111111").symlink_to(tmp_path / "elsewhere")
    os.utime(tmp_path / ".tmp-r.json-1-11111111", (1, 1), follow_symlinks=False)
    (tmp_path / ".tmp-r.json-1-22222222").mkdir()
    os.utime(tmp_path / ".tmp-r.json-1-22222222", (1, 1))
    before = {path.name for path in tmp_path.iterdir()}
    assert gpureport("report", "gpu.csv", "-o", "r.json").code == 0
    assert {path.name for path in tmp_path.iterdir()} == before - {*swept} | {"r.json"}
