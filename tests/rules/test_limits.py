"""What a limit may be, and limits on training metrics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport import Analysis, analyze
from gpureport.errors import SettingsError
from gpureport.testing import Work, check, finding, recording
from tests.patience import patience
from tests.rules.nights import BROKEN, CANNOT, PASSED, one, told
from tests.statistics.runs import learning, made
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
    outcomes = {text: check(f"idle_gap {text} 0.3 s", run)[0].outcome.value for text in (">=", "<=", ">", "<")}
    assert outcomes == {">=": "passed", "<=": "passed", ">": "broken", "<": "broken"}


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


WHOLE = """
[[policy]]
limit = "gpu_utilization_ratio >= 80%"

[[policy]]
limit = "no idle_gap"
for = { gpu = [2, 0], step = "night-*", source = "node1*" }
unless = "duration < 10 min"
confidence = "high"
"""


def stated(folder: Path, text: str) -> Path:
    path = folder / "gpureport.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_policy_is_read(tmp_path: Path) -> None:
    path = stated(tmp_path, WHOLE)
    first, second = check(path, RUN)
    assert (first.limit, first.origin) == ("gpu_utilization_ratio mean >= 80%", f"{path}:3")
    words = "no idle_gap for GPU 0, 2, step night-*, source node1* unless duration < 10 min"
    assert (second.limit, second.origin, second.reason_code) == (words, f"{path}:6", "no_run_matches")
    assert check(stated(tmp_path, "[prices]\n"), RUN) == ()


def test_a_mistake_in_the_settings_is_named_with_its_line(tmp_path: Path) -> None:
    for head, text in read_blocks(HERE / "refused_settings.txt"):
        line, code = head.split()
        path = stated(tmp_path, text)
        with pytest.raises(SettingsError) as caught:
            check(path, analyze(RUN.recording, settings=path))
        assert caught.value.where == (str(path) if line == "-" else f"{path}:{line}"), text
        assert code in {"-", caught.value.code}, text


MINUTES = [60.0 * minute for minute in range(1, 9)]
ACCURACY = [0.2, 0.5, 0.7, 0.76, 0.8, 0.79, 0.79, 0.79]
LOSS = [2.0, 1.0, 0.6, 0.5, 0.4, 0.45, 0.45, 0.45]
TARGET = "val_accuracy=0.75"


def trained(curves: Mapping[str, Sequence[float]] | None = None, *, is_priced: bool = False) -> Analysis:
    """Return a run of ten minutes with training metrics, one value a minute."""
    known = {"val_accuracy": ACCURACY, "val_loss": LOSS} if curves is None else curves
    return learning("a", {name: (MINUTES, values) for name, values in known.items()}, is_priced=is_priced)


def test_what_is_not_known_cannot_be_judged() -> None:
    cases: list[tuple[str, dict[str, list[float]] | None, str | None, str]] = [
        ("val_accuracy >= 0.7", {}, TARGET, "not_recorded"),
        ("val_accuracy >= 0.7", {"loss": LOSS}, TARGET, "not_recorded"),
        ("training gain best >= 1", {"gain": LOSS}, TARGET, "unknown_direction"),
        ("seconds_to_target <= 1 h", None, None, "no_target"),
        ("seconds_to_target <= 1 h", {"val_loss": LOSS}, TARGET, "not_recorded"),
        ("gpu_seconds_to_target <= 1 h", {"val_accuracy": [0.4] * 8}, TARGET, "not_reached"),
        ("cost_to_target <= 1 EUR", None, TARGET, "no_price"),
    ]
    for limit, curves, target, code in cases:
        found = one(limit, trained(curves), target=target)
        assert (told(found), found.value) == ((CANNOT, code), None), limit


@pytest.mark.parametrize("limit", ["val_loss <= 1", "val_loss >= 0", "val_accuracy >= 50%"])
def test_training_that_diverged_breaks_every_limit_on_its_end(limit: str) -> None:
    run = trained({name: [*ACCURACY[:7], float("nan")] for name in ("val_loss", "val_accuracy")})
    found = one(limit, run)
    assert (found.outcome.value, found.value, found.observed[:8]) == (BROKEN, None, "diverged")
    assert one("val_accuracy best >= 0.8", run).outcome.value == PASSED


def test_targets_that_were_never_reached_and_their_cost() -> None:
    # How long it would have taken is not known, and is not 0.
    run = trained({"val_accuracy": [0.1 + minute / 100 for minute in range(8)]})
    for limit, expected in (
        ("<= 5 min", (BROKEN, "")),
        ("<= 1 h", (CANNOT, "target_not_reached")),
        (">= 5 min", (PASSED, "")),
    ):
        found = one(f"seconds_to_target {limit}", run, target=TARGET)
        assert (told(found), found.value, found.bounds) == (expected, None, None)
    # Four minutes at 2 EUR an hour.
    run = trained(is_priced=True)
    for limit, expected in (
        ("0.2 EUR", (PASSED, "")),
        ("0.1 EUR", (BROKEN, "")),
        ("1 USD", (CANNOT, "other_currency")),
    ):
        assert told(one(f"cost_to_target <= {limit}", run, target=TARGET)) == expected


def test_accuracies_in_per_cent_and_rates_of_training_alone() -> None:
    # A limit of 78% means 78 of 100.
    run = trained({"val_accuracy": [value * 100 for value in ACCURACY]})
    outcomes = [one(f"val_accuracy >= {limit}", run).outcome.value for limit in ("78%", "80%", "78")]
    assert outcomes == [PASSED, BROKEN, PASSED]
    # 12,000 steps in ten minutes after five of start-up are 20 a second, without a throughput; without work none.
    util = np.concatenate([np.zeros(300), np.full(600, 90.0)])
    run = made("a", util=util, work=Work(amount=12_000, unit="steps"))
    for limit, outcome in ((">= 19 /s", PASSED), (">= 21 /s", BROKEN)):
        found = one(f"training_rate_hertz {limit}", run)
        assert found.outcome.value == outcome
        assert found.value == pytest.approx(20, rel=0.01)
    assert told(one("training_rate_hertz >= 19 /s", made("a", util=util))) == (CANNOT, "unknown_work")
