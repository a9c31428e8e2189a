"""What a comparison says of each of its runs, in names and words that a tracker can keep."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpureport.errors import SourceError
from gpureport.publishing.published_figures import is_comparison, read_run_figures

PER_WORK = "gpu_seconds_per_1000_work"


def delta(base: str, step: str, metric: str = PER_WORK, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return a difference as the JSON holds it."""
    known = {"base": base, "step": step, "metric": metric, "device": None, "unit": "s", "verdict": "better"}
    return known | {"before": 4.0, "difference": -2.0, "interval": [-2.4, -1.6]} | more


def step(label: str, *names: str, **measures: float | None) -> dict[str, Any]:
    """Return a step as the JSON holds it."""
    sources = [{"kind": "nvidia_smi", "locator": "a#b.csv"}, {"kind": "mlflow", "locator": f"mlflow:a#b.db#{label}id"}]
    runs = [{"name": name, "sources": sources, "measures": measures, "lost_ratio": 0.25} for name in names]
    return {"label": label, "runs": runs}


def written(folder: Path, steps: list[dict[str, Any]], deltas: list[dict[str, Any]]) -> Path:
    """Write the JSON of a comparison; return its path."""
    accuracy = {"base": "a", "step": "b", "name": "accuracy", "leading": True, "verdict": "worse"}
    accuracy |= {"before": {"final": 0.791, "diverged": 0}, "after": {"final": 0.612, "diverged": 0}}
    others: list[dict[str, Any]] = [
        {"name": "loss", "leading": False},
        {"name": "f1", "after": {"final": None, "diverged": 0}},
        {"name": "score", "after": {"final": None, "diverged": 1}},
    ]
    quality = [accuracy, *(accuracy | other for other in others)]
    document = {"schema": "gpureport.comparison/1", "primary": PER_WORK, "steps": steps, "deltas": deltas}
    document["quality"] = quality
    path = folder / "comparison.json"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def test_each_run_gets_its_own_figures_and_the_change_of_its_step(tmp_path: Path) -> None:
    """A figure that is not known is left out; repetitions share the tags of their step."""
    steps = [step("a", "one", idle_ratio=0.5, energy_joules=None), step("b", "two", "three", gpu_seconds=3)]
    first, *others = read_run_figures(written(tmp_path, steps, [delta("a", "b")]))
    assert dict(first.metrics) == {"idle_ratio": 0.5, "lost_ratio": 0.25}
    assert dict(first.tags) == {"step": "a", "judged_by": PER_WORK}
    assert [run.name for run in others] == ["two", "three"]
    for run in others:
        assert dict(run.metrics) == {"gpu_seconds": 3.0, "lost_ratio": 0.25}
        assert dict(run.tags) == {
            "step": "b",
            "judged_by": PER_WORK,
            "compared_with": "a",
            "verdict": "better",
            "change": "-50% (-60 to -40%)",
            "change_since_first": "-50% (-60 to -40%)",
            "quality": "accuracy 0.791 to 0.612: worse; score 0.791 to not a number: worse",
        }


@pytest.mark.parametrize("after", [None, 2.0])
def test_a_training_rate_that_nobody_recorded_has_no_verdict(after: float | None, tmp_path: Path) -> None:
    """One that a step lacks has: there is not enough data."""
    rate = delta("a", "b", "training_rate_hertz", before=None, after=after, difference=None, verdict="not enough data")
    _, run = read_run_figures(written(tmp_path, [step("a", "one"), step("b", "two")], [delta("a", "b"), rate]))
    assert run.tags.get("training_verdict") == (None if after is None else "not enough data")


def test_a_run_is_found_by_the_id_its_tracker_gave_it(tmp_path: Path) -> None:
    """It stands after the last sign of its locator, and other trackers do not count."""
    (run,) = read_run_figures(written(tmp_path, [step("a", "one")], []))
    assert (run.tracker_id("mlflow"), run.tracker_id("neptune")) == ("aid", None)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"interval": None}, "-50%"),
        ({"unit": "1", "difference": 0.12, "interval": [0.05, 0.19]}, "+12 points (+5 to +19 points)"),
        ({"difference": None, "interval": None}, None),
        ({"before": 0.0}, None),
        ({"before": None, "difference": None, "interval": None}, None),
        ({"device": "gpu:0"}, None),
        ({"interval": None, "verdict": "not enough data"}, None),
    ],
)
def test_a_change_is_said_in_per_cent_or_points(tmp_path: Path, more: dict[str, Any], expected: str | None) -> None:
    """Of one GPU alone, or without a value before, there is none."""
    path = written(tmp_path, [step("a", "one"), step("b", "two")], [delta("a", "b", **more)])
    assert read_run_figures(path)[1].tags.get("change") == expected


def test_not_enough_data_is_a_verdict_without_a_change(tmp_path: Path) -> None:
    """A table of runs that sorts by the change would rank what nothing is known of."""
    path = written(
        tmp_path, [step("a", "one"), step("b", "two")], [delta("a", "b", interval=None, verdict="not enough data")]
    )
    tags = read_run_figures(path)[1].tags
    assert (tags["verdict"], "change" in tags, "change_since_first" in tags) == ("not enough data", False, False)


def test_training_alone_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    """And the third step is also compared with the first."""
    steps = [step(label, label) for label in "abc"]
    training = delta("b", "c", "training_rate_hertz", verdict="worse", unit="1/s", interval=None, difference=-0.4)
    deltas = [delta("a", "b"), delta("b", "c", verdict="no clear change"), training, delta("a", "c", difference=-3.0)]
    tags = dict(read_run_figures(written(tmp_path, steps, deltas))[2].tags)
    assert tags["compared_with"] == "b"
    assert (tags["verdict"], tags["change_since_first"]) == ("no clear change", "-75% (-60 to -40%)")
    assert (tags["training_verdict"], tags["training_change"]) == ("worse", "-10%")


@pytest.mark.parametrize("text", ["", "<html>", "\xff", '{"schema": "gpureport.analysis/1"}', "[" * 100_000])
def test_what_is_no_comparison_is_none(tmp_path: Path, text: str) -> None:
    """Whatever it is called."""
    path = tmp_path / "comparison.json"
    path.write_text(text, encoding="latin-1")
    assert not is_comparison(path)
    with pytest.raises(SourceError, match="gpureport compare BASE NEXT --format json"):
        read_run_figures(path)


def test_a_comparison_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    """Its runs do not say where they come from."""
    known = step("a", "one")
    del known["runs"][0]["sources"]
    path = written(tmp_path, [known], [])
    assert is_comparison(path)
    with pytest.raises(SourceError, match="not the JSON of a comparison by this version"):
        read_run_figures(path)


def test_a_figure_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    """Python's JSON has whole numbers without end."""
    path = written(tmp_path, [step("a", "one", gpu_seconds=10**400)], [])
    with pytest.raises(SourceError, match="not the JSON of a comparison by this version"):
        read_run_figures(path)
