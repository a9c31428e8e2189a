"""What a limit may be."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport import analyze
from gpureport.errors import SettingsError
from gpureport.testing import check, finding, recording
from tests.patience import patience
from tests.support.tables import read_blocks, read_table

HERE = Path(__file__).parent
RUN = analyze(recording(util=np.full(90, 90.0), power=200.0))


def test_what_a_limit_is_on() -> None:
    for text, words, metric, unit in read_table(HERE / "limits.tsv"):
        (found,) = check(text, RUN)
        assert (found.limit, found.origin) == (text if words == "-" else words, "--fail-on"), text
        assert found.metric == (re.split(" [<>]", found.limit)[0] if metric == "-" else metric), text
        assert unit in {"-", found.unit or "''"}, text
        assert check(found.limit, RUN)[0] == found, text


def test_a_mistake_is_named() -> None:
    for text, code in read_table(HERE / "mistakes.tsv"):
        with pytest.raises(SettingsError) as caught:
            check(text, RUN)
        assert (caught.value.code, caught.value.where, bool(caught.value.hint)) == (code, "--fail-on", True), text


WORDS = (
    st.sampled_from(["", "change ", "new ", "no "]),
    st.sampled_from(["idle_ratio", "lost", "cost", "problem", "idle_gap", "gpu_power_watts", "work_rate_hertz", "x"]),
    st.sampled_from(["", " mean", ".p95", " x"]),
    st.sampled_from(["", " <= ", ">", "=="]),
    st.sampled_from(["", "0", "-3", "2,5", "80", "9" * 400, "nan", "1e3"]),
    st.sampled_from(["", " %", " points", "EUR", " W", " h", " MB", " parsecs"]),
)


@given(st.one_of(st.text(), st.tuples(*WORDS).map("".join)))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    try:
        found = check(text, RUN)
    except SettingsError as error:
        assert error.code  # noqa: PT017 - a limit may be valid as well
        return
    assert [each.limit for each in check(found[0].limit, RUN)] == [found[0].limit]


@pytest.mark.parametrize("text", ["9" * 60_000 + " x y", "9" * 40_000 + "." + "9" * 40_000 + " a b", "9" * 101])
def test_an_amount_without_end_is_none(text: str) -> None:
    with patience(15), pytest.raises(SettingsError):
        check(f"idle_ratio <= {text}", RUN)


def test_limits_offer_what_was_meant_and_include_their_end() -> None:
    for text in ("thermal_throtle", "no overheating"):
        with pytest.raises(SettingsError) as caught:
            check(text, RUN)
        assert "'thermal_throttle'" in caught.value.hint
        assert "coverage" not in caught.value.hint
    # 0.3 s keeps `<= 0.3 s` and breaks `< 0.3 s`, also after the rounding of a sum.
    lost = tuple(finding("idle_gap", (at, at + 1), lost=seconds) for at, seconds in ((10, 0.1), (20, 0.2)))
    run = replace(RUN, findings=lost)
    outcomes = {text: check(f"idle_gap {text} 0.3 s", run)[0].outcome.value for text in ("<=", "<")}
    assert outcomes == {"<=": "passed", "<": "broken"}


@settings(max_examples=60)
@given(st.floats(20, 99), st.floats(-0.05, 0.05))
def test_a_value_reads_on_its_side_of_a_limit(bound: float, share: float) -> None:
    limit = round(bound, 2)
    run = analyze(recording(util=np.full(70, 90.0), temperature=limit * (1 + share)))
    (found,) = check(f"gpu_temperature_celsius max <= {limit} °C", run)
    assert found.value is not None
    back = float(found.observed.replace("\N{NO-BREAK SPACE}", " ").partition(" ")[0])
    assert (back > limit) == (found.outcome.value == "broken")
    assert back < limit or found.value >= limit * (1 - 1e-9)


def stated(folder: Path, text: str) -> Path:
    path = folder / "gpureport.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_policy_is_read(tmp_path: Path) -> None:
    path = HERE / "whole.toml"
    first, second = check(path, RUN)
    assert (first.limit, first.origin) == ("gpu_utilization_ratio mean >= 80%", f"{path}:2")
    words = "no idle_gap for GPU 0, 2, step night-*, source node1* unless duration < 10 min"
    assert (second.limit, second.origin, second.reason_code) == (words, f"{path}:5", "no_run_matches")
    assert check(stated(tmp_path, "[prices]\n"), RUN) == ()


def test_a_mistake_in_the_settings_is_named_with_its_line(tmp_path: Path) -> None:
    for head, text in read_blocks(HERE / "refused_settings.txt"):
        line, code = head.split()
        path = stated(tmp_path, text)
        with pytest.raises(SettingsError) as caught:
            check(path, analyze(RUN.recording, settings=path))
        assert caught.value.where == (str(path) if line == "-" else f"{path}:{line}"), text
        assert code in {"-", caught.value.code}, text
