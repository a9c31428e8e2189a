"""Groups by settings: how `by` makes them, the best of them, effects, and what a design does not tell."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from gpureport import Analysis
from gpureport.comparison.study import find_best_group
from gpureport.errors import SettingsError
from gpureport.testing import Quality, Source, Verdict
from tests.statistics.runs import TRAINING_RATE, compared, document, level, made, trained
from tests.support.tables import read_table

HERE = Path(__file__).parent
SECONDS, MINUTE = 700, 60
STUDIES = 1500
BATCH = "param:batch"
ZONES = ("Europe/Berlin", "UTC", None)
_PLAIN = made("plain", util=level(80, MINUTE), power=200.0)


def run(
    rate: float | None, seed: int, accuracy: float = 0.0, unit: str = "samples", seconds: int = SECONDS, **params: str
) -> Analysis:
    scatter = np.random.default_rng(seed).normal(0, 0.01, SECONDS)
    stamps = range(5, seconds, 5)
    training = [(float(at), at, f"{unit}_per_second", rate * (1 + scatter[at])) for at in stamps] if rate else []
    training += [(float(at), at, "val_accuracy", accuracy + scatter[at] / 10) for at in stamps if accuracy]
    util = level(60 if rate is None else 80, seconds, seed)
    return made(f"r{seed}", params=dict(sorted(params.items())), training=training, util=util, power=200.0)


def study(runs: Sequence[Analysis], by: str = BATCH) -> dict[str, Any]:
    found: dict[str, Any] = document(*runs, by=by)["study"]
    return found


def repeated(*rates: tuple[str, float], between: float = 0.01) -> list[Analysis]:
    return [
        run(rate * (1 + shift), 10 * at + place, batch=batch)
        for at, (batch, rate) in enumerate(rates)
        for place, shift in enumerate((-between, 0.0, between))
    ]


def designed(rates: dict[tuple[str, str], float], **more: Any) -> list[Analysis]:
    return [
        run(rate * (1 + 0.01 * place), 100 * at + place, batch=batch, workers=workers, **more)
        for at, ((batch, workers), rate) in enumerate(rates.items())
        for place in range(3)
    ]


def test_effects_and_the_best_are_those_of_another_computation() -> None:
    """Eighteen runs, as many of every setting: effects are differences of marginal means of logarithms.

    The best group stands by its geometric mean, its margin over the next by Welch's degrees of 1947.
    """
    rng = np.random.default_rng(24)
    speed, gain = {"torch": 1.0, "jax": 1.3}, {"16": 1.24, "32": 1.55, "8": 1.0}
    runs = [
        run(400 * speed[name] * gain[batch] * shift, 10 * at + k, framework=name, batch=batch)
        for k in range(3)
        for at, (name, batch) in enumerate(product(speed, gain))
        for shift in (float(np.exp(rng.normal(0, 0.02))),)
    ]
    found = document(*runs, by="param:framework,param:batch")
    logs: dict[tuple[str, str], list[float]] = {}
    for step in found["steps"]:
        for one in step["runs"]:
            key = one["params"]["framework"], one["params"]["batch"]
            logs.setdefault(key, []).append(np.log(one["measures"]["training_rate_hertz"]))

    def mean(place: int, value: str) -> float:
        return float(np.mean([logs[key] for key in logs if key[place] == value]))

    whole = np.mean(list(logs.values()))
    left = [v - mean(0, f) - mean(1, b) + whole for (f, b), values in logs.items() for v in values]
    scatter = np.sqrt(np.sum(np.square(left)) / 14)
    effects = next(each for each in found["study"]["effects"] if each["metric"] == "training_rate_hertz")
    assert (effects["runs"], effects["degrees"], effects["additive"]) == (18, 14, True)
    by_framework, by_batch = effects["settings"]
    assert [level["value"] for level in by_batch["levels"]] == ["8", "16", "32"]
    for row, change, count in (
        (by_framework["levels"][1], mean(0, "jax") - mean(0, "torch"), 9),
        (by_batch["levels"][1], mean(1, "16") - mean(1, "8"), 6),
        (by_batch["levels"][2], mean(1, "32") - mean(1, "8"), 6),
    ):
        half = stdtrit(14, 0.975) * scatter * np.sqrt(2 / count)
        assert (row["change"], row["verdict_code"]) == (pytest.approx(np.expm1(change), rel=1e-6), "better")
        assert row["interval"] == pytest.approx(np.expm1([change - half, change + half]), rel=1e-6)
    first, second = sorted(logs, key=lambda key: -np.mean(logs[key]))[:2]
    best, following = (np.array(logs[key]) for key in (first, second))
    parts = [side.var(ddof=1) / 3 for side in (best, following)]
    degrees = min(1 / sum((part / sum(parts)) ** 2 / 4 for part in parts) - 2, 4)
    change, half = best.mean() - following.mean(), stdtrit(degrees, 0.975) * np.sqrt(sum(parts))
    told = found["study"]["best"]["speed"]
    assert (first, told["label"], told["verdict_code"]) == (("jax", "32"), "framework=jax, batch=32", "better")
    assert (told["change"], told["tested"]) == (pytest.approx(np.expm1(change), rel=1e-6), 5)
    assert told["interval"] == pytest.approx(np.expm1([change - half, change + half]), rel=1e-6)


def test_the_best_group_stands_clear_or_beside_others() -> None:
    best = study(repeated(("8", 100), ("16", 200), ("32", 240)))["best"]
    speed, cost = best["speed"], best["cost"]
    assert (speed["label"], speed["next"], speed["verdict_code"]) == ("batch=32", "batch=16", "better")
    assert (speed["rivals"], speed["tested"]) == ([], 2)
    assert speed["change"] == pytest.approx(0.2, abs=0.01)
    assert (cost["label"], cost["verdict_code"], cost["metric"]) == ("batch=32", "better", "gpu_seconds_per_1000_work")
    assert cost["change"] == pytest.approx(1 / 1.2 - 1, abs=0.01)
    close = ("16", 200.0), ("32", 202.0)
    speed = study(repeated(("8", 100), *close, between=0.03))["best"]["speed"]
    assert (speed["verdict_code"], speed["rivals"]) == ("no_clear_change", ["batch=16"])
    single = study([*repeated(*close, between=0.03), run(60, 99, batch="8")])["best"]["speed"]
    assert (set(single["rivals"]), single["unconfirmed"]) == ({"batch=16", "batch=8"}, ["batch=8"])
    # A group of one run of 40 s is not passed over for the next, and nothing is claimed of it.
    speed = study([*repeated(("8", 100), ("16", 200)), run(240, 9, seconds=40, batch="32")])["best"]["speed"]
    assert (speed["label"], speed["unknown"], speed["verdict_code"] == "better") == ("batch=32", [], False)


@pytest.mark.parametrize(("rate", "verdict"), [(150.0, "unconfirmed"), (101.0, "no_clear_change")])
def test_single_runs_confirm_nothing(rate: float, verdict: str) -> None:
    """The best is named with its margin, unconfirmed; a difference of 1% is what repeating a run commonly changes."""
    found = study([run(100.0, 0, batch="8"), run(rate, 1, batch="16")])
    (setting,) = found["effects"][0]["settings"]
    effect = setting["levels"][1]
    assert (found["best"]["speed"]["verdict_code"], effect["verdict_code"]) == (verdict, verdict)
    assert (found["effects"][0]["degrees"], effect["interval"]) == (0, None)
    assert effect["change"] == pytest.approx(rate / 100 - 1, abs=0.01)


def test_short_single_runs_tell_no_small_effect() -> None:
    """A fifth more within 40 s may be a slow change of the load; three times as much is not, and stays unconfirmed."""
    rates = (("8", 100.0), ("16", 120.0), ("32", 300.0))
    runs = [run(rate, seed, seconds=40, batch=batch) for seed, (batch, rate) in enumerate(rates)]
    for effects in study(runs)["effects"]:
        codes = [each["verdict_code"] for each in effects["settings"][0]["levels"]]
        assert codes == ["", "not_enough_data", "unconfirmed"]


def test_settings_that_changed_together_get_no_effect() -> None:
    runs = [
        run(100.0 * (1 + at) + place, 10 * at + place, batch=str(8 << at), lr=f"0.{at + 1}")
        for at, place in product((0, 1), repeat=2)
    ]
    found = study(runs)
    settings = {setting["key"]: setting for setting in found["effects"][0]["settings"]}
    together = {key: [each["key"] for each in setting["confounded_with"]] for key, setting in settings.items()}
    assert together == {"batch": ["lr"], "lr": ["batch"]}
    assert settings["batch"]["levels"][1]["change"] is None
    assert [each["key"] for each in found["also_varied"]] == ["lr"]


def test_what_else_varied_is_held_equal() -> None:
    rates = {("8", "2"): 100.0, ("8", "8"): 150.0, ("16", "2"): 120.0, ("16", "8"): 180.0}
    seeded = [(one, (*one.run.params, ("random_seed", one.run.name[-1]))) for one in designed(rates)]
    found = study([replace(one, run=replace(one.run, params=params)) for one, params in seeded])
    batch, workers = found["effects"][0]["settings"]
    assert (batch["key"], workers["key"]) == ("batch", "workers")
    assert [each["levels"][1]["change"] for each in (batch, workers)] == pytest.approx([0.2, 0.5], abs=0.01)
    assert {each["levels"][1]["verdict_code"] for each in (batch, workers)} == {"better"}
    assert [each["key"] for each in found["repetitions"]] == ["random_seed"]
    # more workers help the large batch alone
    rates = {("8", "2"): 100.0, ("8", "8"): 100.0, ("16", "2"): 100.0, ("16", "8"): 200.0}
    assert study(designed(rates))["effects"][0]["additive"] is False


def test_a_best_that_trains_worse_is_named_with_both_values() -> None:
    """The fastest batch is 18 points less accurate than the slowest; accuracies that agree are no warning."""
    settings = (("8", 100.0, 0.79), ("16", 200.0, 0.78), ("32", 240.0, 0.61))
    runs = [
        run(rate * (1 + place / 100), 10 * at + place, accuracy, batch=batch)
        for at, (batch, rate, accuracy) in enumerate(settings)
        for place in range(3)
    ]
    (lower,) = study(runs)["best"]["cost"]["lower_quality"]
    assert (lower["name"], lower["group"], lower["verdict_code"]) == ("val_accuracy", "batch=8", "worse")
    assert (round(lower["own"], 2), round(lower["value"], 2)) == (0.61, 0.79)
    equal = [run(100.0 * (1 + at), 10 * at + place, 0.79, batch=str(8 << at)) for at in (0, 1) for place in range(3)]
    assert study(equal)["best"]["cost"]["lower_quality"] == []


def test_names_of_runs_are_no_setting_and_many_settings_take_no_time() -> None:
    runs = [run(100.0 + seed, seed, batch=str(8 << (seed % 2)), out=f"runs/{seed}") for seed in range(4)]
    assert [each["key"] for each in study(runs)["names"]] == ["out"]
    single = [run(100.0 + seed, seed, batch=str(8 << seed), lr=f"{seed}.5") for seed in range(3)]
    assert [setting["key"] for setting in study(single)["effects"][0]["settings"]] == ["batch", "lr"]
    runs = []
    for one in repeated(("8", 100.0), ("16", 200.0)):
        more = [(f"p{number:02}", f"{number} with {dict(one.run.params)['batch']}") for number in range(60)]
        runs.append(replace(one, run=replace(one.run, params=(*one.run.params, *more))))
    batch = study(runs)["effects"][0]["settings"][0]
    assert [each["key"] for each in batch["confounded_with"]][:2] == ["p00", "p01"]
    assert len(batch["confounded_with"]) == 60


def logging(name: str, batch: int, rate: float, rng: np.random.Generator) -> Analysis:
    run = replace(_PLAIN.run, id=name, name=name, params=(("batch", str(batch)),))
    points = [
        (float(at), at, "samples_per_second", rate * (1 + float(rng.normal(0, 0.01)))) for at in range(5, MINUTE, 5)
    ]
    return replace(_PLAIN, run=run, recording=trained(replace(_PLAIN.recording, run=run), points))


def claim_rate(levels: Sequence[float]) -> float:
    rng = np.random.default_rng(len(levels))
    claims = 0
    for _ in range(STUDIES):
        runs = [
            logging(f"{at}-{k}", 8 << at, 100 * float(np.exp(rng.normal(log, 0.03))), rng)
            for at, log in enumerate(levels)
            for k in range(3)
        ]
        found = compared(*runs, by=BATCH)
        # alone, as a whole document takes three times as long
        best = find_best_group(found.steps, TRAINING_RATE, found.goals)
        assert best is not None
        assert best.unknown == ()
        claims += best.verdict is Verdict.BETTER
    return claims / STUDIES


@pytest.mark.slow
@pytest.mark.parametrize("levels", [(0.0,) * 2, (0.0,) * 3, (0.0,) * 6, (0.0, 0.0, -1.0), (0.0, 0.0, -1.0, -1.0, -1.0)])
def test_groups_that_are_alike_have_no_best(levels: Sequence[float]) -> None:
    assert claim_rate(levels) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6])
def test_a_best_that_is_far_ahead_is_found(count: int) -> None:
    assert claim_rate((0.3, *(0.0,) * (count - 1))) > 0.97


def of(name: str, **params: str) -> Analysis:
    return made(name, util=level(90, 60, 1), params=params)


def test_what_by_takes() -> None:
    cases: list[tuple[str, list[tuple[str, str]]]] = [
        ("param:framework,param:batch", [("param", "framework"), ("param", "batch")]),
        ("gpu,param:batch", [("gpu", ""), ("param", "batch")]),
        ("param:batch,gpu", [("param", "batch"), ("gpu", "")]),
        ("param:a,b", [("param", "a,b")]),
        ("tag:mlflow.user", [("tag", "mlflow.user")]),
    ]
    for by, kinds in cases:
        runs = []
        for name, framework in (("1", "torch"), ("2", "jax")):
            one = of(name, framework=framework, batch=name, **{"a,b": name})
            runs.append(replace(one, run=replace(one.run, tags=(("mlflow.user", name),))))
        assert [(each["kind"], each["key"]) for each in study(runs, by)["by"]] == kinds, by


def test_what_by_refuses_and_what_is_studied_without_one_unit_of_work() -> None:
    silent = [run(None, seed, batch=batch) for seed, batch in enumerate(("8", "8", "16", "16"))]
    mixed = [run(100.0, seed, batch="8") for seed in range(2)]
    mixed += [run(200.0, seed, unit="tokens", batch="16") for seed in (2, 3)]
    for runs in (silent, mixed):
        found = study(runs)
        assert found["best"] == {"cost": None, "speed": None, "energy": None}
        (effects,) = found["effects"]
        assert (effects["metric"], effects["relative"]) == ("gpu_utilization_ratio", False)
    runs = [of("1", a="1"), of("2", a="2")]
    for by in ("colour", "param:", "gpu:0", "param:a,param:b,gpu", "gpu,gpu", "step,param:a"):
        with pytest.raises(ValueError, match=r"'|names|mixes"):
            compared(*runs, by=by)
    for by, code in (("param:precision", "no_such_param"), ("tag:x", "no_such_tag"), ("folder", "no_step_folder")):
        with pytest.raises(SettingsError) as caught:
            compared(*runs, by=by)
        assert caught.value.code == code


def test_groups_stand_by_the_size_of_their_values() -> None:
    for values, ordered in read_table(HERE / "orders.tsv"):
        runs = [of(str(at), a=value) for at, value in enumerate(values.split("|"))]
        assert "|".join(study(runs, "param:a")["by"][0]["values"]) == ordered, values
    pairs = (("torch", "16"), ("jax", "8"), ("torch", "8"), ("torch", "16"), ("jax", "16"))
    found = compared(*(of(str(at), f=f, b=b) for at, (f, b) in enumerate(pairs)), by="param:f,param:b")
    grouped = [f"{step.label}: {' '.join(one.run.name for one in step.analyses)}" for step in found.steps]
    assert grouped == ["f=torch, b=8: 2", "f=torch, b=16: 0 3", "f=jax, b=8: 1", "f=jax, b=16: 4"]


def stored(locator: str, start: int = 0, kind: str = "nvidia_smi", **info: Any) -> Analysis:
    one = of(locator)
    source = Source(kind=kind, locator=locator, sha256="")
    return replace(one, run=replace(one.run, sources=(source,), started=start, **info))


def folders(*runs: Analysis) -> list[tuple[str, int]]:
    return [(step.label, len(step.runs)) for step in compared(*runs, by="folder").steps]


def test_the_first_folder_that_differs_tells_steps_apart() -> None:
    for locators, expected in read_table(HERE / "folders.tsv"):
        found = folders(*(stored(locator, at) for at, locator in enumerate(locators.split("|"))))
        assert "|".join(f"{name} {count}" for name, count in found) == expected, locators
    lone = (stored("x/1.csv"), stored("-"), stored("x/a/mlruns#1", kind="mlflow"))
    for other in lone:
        with pytest.raises(SettingsError) as caught:
            folders(stored("x/a/1.csv"), stored("x/b/1.csv"), other)
        assert caught.value.code == "no_step_folder"


def test_folders_stand_by_their_numbers_then_by_time() -> None:
    zones = {"timezone": "Europe/Berlin"}

    def ordered(names: Sequence[str], starts: Sequence[int], infos: Any = (zones,) * 9) -> list[str]:
        runs = [stored(f"x/{n}/{at}.csv", at, **info) for n, at, info in zip(names, starts, infos, strict=False)]
        return [name for name, _ in folders(*runs)]

    assert ordered(["10-amp", "2-workers", "1-base", "10-amp"], range(4)) == ["1-base", "2-workers", "10-amp"]
    assert ordered(["8-workers", "base", "base", "8-workers"], (5, 9, 2, 7)) == ["base", "8-workers"]
    assert ordered(["1-b", "1-a", "1-a", "1-b"], (5, 9, 2, 7)) == ["1-a", "1-b"]
    # moments in different zones are comparable; a time without a zone is not, nor a log without stamps
    assert ordered(["a", "b"], (5, 2), [{"timezone": zone} for zone in ZONES[:2]]) == ["b", "a"]
    assert ordered(["a", "b"], (5, 2), [{"timezone": zone} for zone in ZONES[1:]]) == ["a", "b"]
    assert ordered(["b", "a"], (2, 5), [zones | {"quality": Quality(synthetic_time=True)}] * 2) == ["a", "b"]
