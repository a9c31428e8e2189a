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

RUN = analyze(recording(util=np.full(90, 90.0), power=200.0))


def test_what_a_limit_is_on() -> None:
    cases: list[tuple[str, str | None, str, str | None]] = [
        ("gpu_utilization_ratio >= 80%", "gpu_utilization_ratio mean >= 80%", "gpu_utilization_ratio mean", "1"),
        ("gpu_utilization_ratio.below_25 <= 5%", "gpu_utilization_ratio below_25 <= 5%", "", "1"),
        ("gpu_power_watts p95 < 300 W", None, "gpu_power_watts p95", "W"),
        ("idle_seconds <= 10 min", None, "", "s"),
        ("idle_ratio <= 5%", None, "", "1"),
        ("energy_joules <= 2 kWh", None, "", "J"),
        ("duration >= 1 h", None, "", "s"),
        ("rejected <= 0", None, "", ""),
        ("waiting_for_input <= 2 GPU-h", None, "", "s"),
        ("lost <= 10%", None, "", "1"),
        ("no idle_gap", None, "idle_gap", "findings"),
        ("warning <= 3", None, "", "findings"),
        ("idle_gap <= 1.5%", None, "", "1"),
        ("gpu_temperature_celsius p95 < 85 °C", None, "gpu_temperature_celsius p95", None),
        ("gpu_sm_clock_hertz p5 >= 1,2 GHz", None, "gpu_sm_clock_hertz p5", None),
        ("clock_event_hw_slowdown <= 1%", "clock_event_hw_slowdown mean <= 1%", "clock_event_hw_slowdown mean", None),
        ("work_rate_hertz >= 40", None, "", None),
        ("cost <= 3 EUR", None, "", None),
        ("carbon <= 2 kg", None, "", None),
        ("throttling <= 3 EUR", None, "", None),
        ("change idle_ratio <= 2 points", None, "idle_ratio", None),
        ("change gpu_power_watts >= -20 W", None, "gpu_power_watts", None),
        ("no new problem", None, "problem", None),
        ("new idle_gap <= 2", None, "idle_gap", None),
        ("val_accuracy >= .78", "val_accuracy final >= .78", "val_accuracy final", None),
        ("val/acc best >= 78%", None, "val/acc best", None),
        ('training "my metric" <= 3', 'training "my metric" final <= 3', "my metric final", None),
        ("seconds_to_target <= 2 h", None, "", None),
        ("change val_loss <= 5%", "change val_loss final <= 5%", "val_loss final", None),
        ('change training "a b" best <= 3', None, "a b best", None),
        ("change seconds_to_target <= 50%", None, "seconds_to_target", None),
        ("thermal_throttle", "no thermal_throttle", "thermal_throttle", None),
    ]
    for text, words, metric, unit in cases:
        (found,) = check(text, RUN)
        assert (found.limit, found.origin) == (words or text, "--fail-on"), text
        assert found.metric == (metric or re.split(" [<>]", found.limit)[0]), text
        assert unit is None or found.unit == unit, text
        assert check(found.limit, RUN)[0] == found, text


def test_a_mistake_is_named() -> None:
    for text, code in (
        ("idle_ratoi <= 5%", "unknown_limit_name"),
        ("idle_ratio", "no_amount"),
        ("idle_ratio <= 100%", "cannot_fail"),
        ("gpu_power_watts >= -20 W", "cannot_fail"),
        ("gpu_utilization_ratio >= 0%", "cannot_fail"),
        ("training samples_per_second >= -5%", "cannot_fail"),
        ("training samples_per_second >= 95%", "cannot_fail"),
        ("idle_ratio <= 5", "wrong_unit"),
        ("idle_ratio <= 10 min", "wrong_unit"),
        ("gpu_memory_used_bytes <= 80 GBit", "not_an_amount"),
        ("gpu_utilization_ratio p7 >= 1%", "unknown_statistic"),
        ("idle_ratio mean <= 1%", "unknown_statistic"),
        ("ecc_errors <= 0", "unknown_limit_name"),
        ("val_loss <= 3 W", "wrong_unit"),
        ("pcie_replays_total <= 3", "unknown_limit_name"),
        ("change idle_ratio <= 2%", "wrong_unit"),
        ("change idle_ratio <= 0 points", "no_amount"),
        ("change idle_gap <= 2", "unknown_limit_name"),
        ("new idle_ratio <= 2", "unknown_kind"),
        ("no idle_gap <= 3", "not_a_limit"),
        ("idle_ratio == 5%", "not_a_limit"),
        ("", "not_a_limit"),
    ):
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


def lasting(seconds: float) -> Analysis:
    return analyze(recording(util=np.full(120, 90.0), times=np.linspace(0, seconds, 120)))


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


def test_what_is_not_its_limit_does_not_read_as_it() -> None:
    cases: list[tuple[str, Analysis, str]] = [
        ("duration >= 2 h", lasting(7199), "1.9997 h"),
        ("duration >= 2 h", lasting(7200), "2 h"),
        ("duration <= 2 h", lasting(7230), "2.01 h"),
        ("duration <= 2 h", lasting(9000), "2 h 30 min"),
        ("gpu_memory_peak_bytes <= 40 GiB", analyze(recording(util=np.full(90, 90.0), memory=40.001)), "40.001 GiB"),
        (
            "gpu_temperature_celsius max <= 20.75 °C",
            analyze(recording(util=np.full(70, 90.0), temperature=20.75)),
            "20.75 °C",
        ),
    ]
    for rule, run, observed in cases:
        assert check(rule, run)[0].observed.replace("\N{NO-BREAK SPACE}", " ") == observed, rule


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


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ('\n[[policy]]\nlimit = "idle_ratoi <= 5%"\n', 3, "unknown_limit_name"),
        ('[[policy]]\nlimit = "no idle_gap"\n\n[[policy]]\nlimit = "lost"\n', 5, "no_amount"),
        ("[[policy]]\nlimit = 3\n", 2, None),
        ("[[policy]]\nfor = { gpu = 0 }\n", 2, "missing_key"),
        ('[[policy]]\nlimit = "problem"\nlimits = "x"\n', 3, "unknown_key"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpus = 0 }\n', 3, "wrong_value"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpu = "0" }\n', 3, "wrong_value"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpu = true }\n', 3, "wrong_value"),
        ('[[policy]]\nlimit = "problem"\nfor = { step = 3 }\n', 3, "wrong_value"),
        ('[[policy]]\nlimit = "problem"\n# why\nunless = "idle"\n', 4, "no_amount"),
        ('[[policy]]\nlimit = "problem"\nunless = "change idle_ratio <= 1 point"\n', 3, "not_an_exception"),
        ('[[policy]]\nlimit = "problem"\nconfidence = "sure"\n', 3, "wrong_value"),
        ('[policy]\nlimit = "problem"\n', None, None),
        ('[[acknowledge]]\nfinding = "idle_gap"\nuntil = 2026-12-31\n', 2, "missing_key"),
        ('[[acknowledge]]\nfinding = "idle_gap"\nreason = "x"\n', 2, "missing_key"),
        ('[[acknowledge]]\nreason = "x"\nuntil = 2026-12-31\n', 2, "missing_key"),
        ('[[acknowledge]]\nfinding = "idle_gp"\nreason = "x"\nuntil = 2026-12-31\n', 2, "unknown_kind"),
        ('[[acknowledge]]\nfinding = "problem"\nreason = "x"\nuntil = 2026-12-31\n', 2, "unknown_kind"),
        ('[[acknowledge]]\nfinding = "idle_gap"\nreason = "x"\nuntil = "soon"\n', 4, "not_a_date"),
    ],
)
def test_a_mistake_in_the_settings_is_named_with_its_line(
    tmp_path: Path, text: str, line: int | None, code: str | None
) -> None:
    path = stated(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        check(path, RUN)
    assert caught.value.where == (str(path) if line is None else f"{path}:{line}")
    assert code is None or caught.value.code == code


MINUTES = [60.0 * minute for minute in range(1, 9)]
ACCURACY = [0.2, 0.5, 0.7, 0.76, 0.8, 0.79, 0.79, 0.79]
LOSS = [2.0, 1.0, 0.6, 0.5, 0.4, 0.45, 0.45, 0.45]
TARGET = "val_accuracy=0.75"


def trained(curves: Mapping[str, Sequence[float]] | None = None, *, is_priced: bool = False) -> Analysis:
    """Return a run of ten minutes with training metrics, one value a minute."""
    known = {"val_accuracy": ACCURACY, "val_loss": LOSS} if curves is None else curves
    return learning("a", {name: (MINUTES, values) for name, values in known.items()}, is_priced=is_priced)


def test_training_metrics_are_held_against_limits() -> None:
    cases: list[tuple[str, str, float]] = [
        ("val_accuracy >= 0.78", PASSED, 0.79),
        ("val_accuracy >= .8", BROKEN, 0.79),
        ("val_accuracy >= 78%", PASSED, 0.79),
        ("val_accuracy best >= 0.8", PASSED, 0.8),
        ("val_loss <= 0.4", BROKEN, 0.45),
        ("val_loss best <= 0.4", PASSED, 0.4),
        ("seconds_to_target <= 5 min", PASSED, 240),
        ("seconds_to_target <= 3 min", BROKEN, 240),
        ("gpu_seconds_to_target <= 0.1 GPU-h", PASSED, 240),
    ]
    for limit, outcome, value in cases:
        found = one(limit, trained(), target=TARGET)
        assert found.outcome.value == outcome, limit
        assert found.value == pytest.approx(value, abs=11 if value > 1 else 1e-6), limit


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
