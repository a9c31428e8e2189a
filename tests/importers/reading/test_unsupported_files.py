"""What is no log of GPUs is refused with what it is, and with what to do."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import find_runs
from tests.importers.written_logs import log, read_text


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        (
            "No devices were found\n",
            "an error message, not a log (No devices were found)",
            "until nvidia-smi by itself shows a table",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "version mismatch)", "record again"),
        ("bash: nvidia-smi: command not found\n", "command not found)", "record again"),
        (
            'Field "clock.sm" is not a valid field to query.\n\n',
            'Field "clock.sm"',
            "leave that field out of the query",
        ),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n", "Git LFS", "git lfs pull"),
        ("Wall time,Step,Value\n1700000000.5,1,0.3\n", "a training log", "with --training"),
        ('"Step","run-1 - train/loss"\n"1","0.5"\n', "a training log", "with --training"),
        ('{"timestamp": 1700000000, "gpu_util": 50}\n', "JSON that no known tool writes", "as a CSV with a header"),
        ('"Relative Time (Process)","run-1 - system/gpu.0.gpu"\n"0","50"\n', "W&B website", "stream='events'"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_it_is(tmp_path: Path, text: str, what: str, hint: str) -> None:
    """A person learns what to do next, not that a log was wanted."""
    path = tmp_path / "gpu.csv"
    path.write_text(text)
    with pytest.raises(SourceError) as refused:
        find_runs(path)
    assert what in refused.value.what
    assert hint in refused.value.hint


@pytest.mark.parametrize("name", ["logs.tar", "logs.tar.gz", "logs.zip"])
def test_an_archive_is_none_of_its_logs(tmp_path: Path, name: str) -> None:
    """What is not compressed in it may look like a log; the files in it are to be given."""
    path = tmp_path / name
    if name == "logs.zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("gpu.csv", log(60))
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as packed_tar:
            entry = tarfile.TarInfo("gpu.csv")
            entry.size = len(log(60))
            packed_tar.addfile(entry, io.BytesIO(log(60).encode()))
    with pytest.raises(SourceError, match="archive; unpack it and give the files in it"):
        find_runs(path)
    (tmp_path / "other.csv").write_text(log(20))
    assert [inputs[0].path.name for inputs in find_runs(tmp_path)] == ["other.csv"]


def test_processes_that_name_no_gpu(tmp_path: Path) -> None:
    """The refusal says which column was missing."""
    rows = "".join(f"2026/03/14 09:00:{second:02d}.000, 42, python, 900 MiB\n" for second in range(30))
    with pytest.raises(SourceError, match=r"no row names its GPU; record a column that names it: .*gpu_uuid with"):
        read_text(tmp_path, f"timestamp, pid, process_name, used_gpu_memory [MiB]\n{rows}")


def test_dates_above_rows_are_no_columns(tmp_path: Path) -> None:
    """The line to type has a name for each cell of the rows, not of the dates that a script wrote above them."""
    text = "".join(
        f"Sat Mar 14 09:00:{second:02d} UTC 2026\n0, {50 + second % 9} %, {1000 + second} MiB\n" for second in range(40)
    )
    with pytest.raises(SourceError, match="--columns column_1,column_2,column_3, with"):
        read_text(tmp_path, text)
