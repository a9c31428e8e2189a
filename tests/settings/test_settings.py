"""gpureport.toml: what it takes, and what it refuses in one line that names file and line, and never shows a secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpureport import testing
from gpureport.errors import SettingsError
from tests.patience import patience
from tests.support.logs import log, write
from tests.support.program import Program, program
from tests.support.tables import read_blocks

REFUSED = {
    **{text: f"{where} " for where, text in read_blocks(Path(__file__).with_name("refused.txt"))},
    "a = [": ": ",
    "a = " + "9" * 5000: ": ",
    "a = 0x" + "f" * 5000: ": ",
    "a = [{b = -9223372036854775809}]": ": ",
    "a = " + "[" * 60 + "]" * 60: ": ",
    "a = " + "[" * 60_000: ": ",
    ".".join("a" * 60) + " = 1": ": ",
    ".".join("a" * 100_000) + " = 1": ": ",
    ".".join(["'a'", '"\\""'] * 30_000) + " = 1": ": ",
    f'[secrets]\nnames = ["{"a" * 101}"]': ":2: ",
    f"[secrets]\nnames = {['ab'] * 101}": ":2: ",
}
"""What is refused, and what follows the name of the file."""
CODES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"policy": [{"limit": "problem", "sometimes": 1}]}, "unknown_key"),
    ({"price": {}}, "unknown_section"),
    ({"policy": 3}, "not_a_table"),
)


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    write(tmp_path, gpu=log(60))
    return program(capsys, monkeypatch, tmp_path)


def test_what_is_refused(gpureport: Program, tmp_path: Path) -> None:
    path = tmp_path / "gpureport.toml"
    for text, where in REFUSED.items():
        path.write_text(text)
        with patience(15):
            done = gpureport("analyze", "gpu.csv")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), text[:80]
        assert done.err.startswith(f"gpureport: gpureport.toml{where}"), (text[:80], done.err)
        assert "hunter2" not in done.err


def test_what_is_read(gpureport: Program, tmp_path: Path) -> None:
    assert "EUR" not in gpureport("analyze", "gpu.csv", "--format", "json").out
    for path, words in ((tmp_path / "gpureport.toml", ()), (tmp_path / "b.toml", ("--config", "b.toml"))):
        path.write_text(
            '[prices]\ngpu_hour = 2.5\ncurrency = "EUR"\ndate = 2026-03-14\n[secrets]\nnames = ["vault_id", "*_pin"]\n'
        )
        (run,) = json.loads(gpureport("analyze", "gpu.csv", "--format", "json", *words).out)["runs"]
        assert "EUR" in json.dumps(run)
        path.unlink()
    assert gpureport("analyze", "gpu.csv", "--config", "none.toml").code == 2


def test_mistakes_have_codes_and_many_tables_take_no_time(gpureport: Program, tmp_path: Path) -> None:
    for content, code in CODES:
        with pytest.raises(SettingsError) as refused:
            testing.check(content)
        assert refused.value.code == code
    # Each key has its line, however many tables there are: 20,000 took minutes; and a line may be long.
    (tmp_path / "gpureport.toml").write_text('[[policy]]\nthat = "x"\n' * 20_000)
    with patience(15):
        done = gpureport("check", "gpu.csv", "--fail-on", "problem")
    assert (done.code, ".toml:2: " in done.err) == (2, True)
    files = [f"../runs/a{number}.csv" for number in range(5000)]
    (tmp_path / "steps.toml").write_text(f'[[step]]\nlabel = "a"\nruns = {files}\n')
    assert gpureport("compare", "--steps", "steps.toml").code in {2, 3}
