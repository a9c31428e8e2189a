"""What changed between two steps, told from what only tells runs apart."""

from dataclasses import replace

import pytest

from gpureport.comparison.setup.setup_changes import (
    SettingValue,
    SetupChange,
    compare_setups,
    has_params,
    list_distinct_changes,
)
from gpureport.testing import Analysis, Device
from tests.comparison.configured_runs import compare_configured, configured

GPU = Device(id="gpu:0", index=0, model="NVIDIA H100 80GB HBM3", driver="550.54")


def changes(*analyses: Analysis) -> dict[str, SetupChange]:
    """Return what changed between the first two steps, by key."""
    return {change.key: change for change in compare_setups(*compare_configured(*analyses).steps)}


def test_a_param_that_changed() -> None:
    """Both values are told; what stayed is not, and what one step does not state is null."""
    found = changes(
        configured("a", {"workers": "2", "lr": "0.1"}), configured("b", {"workers": "14", "lr": "0.1", "pin": "1"})
    )
    assert {key: (change.before, change.after) for key, change in found.items()} == {
        "workers": ("2", "14"),
        "pin": (None, "1"),
    }


def test_values_of_repetitions_stay_apart() -> None:
    """Runs of one step that differ are counted, and a step whose mix of values changed has changed."""
    before = [configured("a", {"workers": value}, name=str(at)) for at, value in enumerate(("2", "2", "14"))]
    after = [configured("b", {"workers": value}, name=str(at)) for at, value in enumerate(("14", "14", "2"))]
    found = changes(*before, *after)["workers"]
    assert (found.before, found.after) == ("14, 2", "14, 2")
    assert found.values_before == (SettingValue(text="2", runs=2), SettingValue(text="14", runs=1))
    assert found.values_after == (SettingValue(text="14", runs=2), SettingValue(text="2", runs=1))
    assert changes(*before, *[configured("b", dict(one.run.params), name=one.run.name) for one in before]) == {}


@pytest.mark.parametrize(
    "key",
    [
        "sys/id",
        "run_id",
        "runId",
        "created",
        "git.commit",
        "mlflow.source.git.commit",
        "mlflow.note.content",
        "user",
        "job",
    ],
)
def test_what_describes_one_run(key: str) -> None:
    """Ids, times, commits and users differ between any two runs and change nothing."""
    found = changes(configured("a", tags={key: "1"}), configured("b", tags={key: "2"}))
    assert [change.of_one_run for change in found.values()] == [True]


@pytest.mark.parametrize("key", ["model.name", "data_dir", "optimizer", "user_embedding", "seed"])
def test_what_describes_the_setup(key: str) -> None:
    """Names that only resemble those of ids are shown, as is a seed of single runs."""
    found = changes(configured("a", {key: "1"}), configured("b", {key: "2"}))
    assert [change.of_one_run for change in found.values()] == [False]


def test_what_differs_in_every_repetition() -> None:
    """Seeds that no two runs share are no change; as soon as two share one they are."""

    def seeded(*seeds: str) -> SetupChange:
        runs = [configured("ab"[at // 2], {"seed": seed}, name=str(at)) for at, seed in enumerate(seeds)]
        return changes(*runs)["seed"]

    assert seeded("1", "2", "3", "4").of_one_run
    assert not seeded("1", "1", "2", "2").of_one_run


def test_hardware() -> None:
    """A GPU of another size is a change; totals that a tracker's shares give are of one size within 5%."""
    sizes = [replace(GPU, memory_total_bytes=total) for total in (79_600_000_000, 80_400_000_000, 40_000_000_000)]
    first, second, third = (configured(label, device=gpu) for label, gpu in zip("abc", sizes, strict=True))
    assert changes(first, second) == {}
    assert [(change.kind, change.after) for change in changes(second, third).values()] == [("hardware", "37 GiB")]


def test_whether_params_were_recorded() -> None:
    """A change shows only where both steps have params or tags; whose a run is says nothing of its setup."""
    runs = (configured("a", {"x": "1"}), configured("b", tags={"y": "2"}), configured("c", tags={"user": "ada"}))
    steps = compare_configured(*runs, configured("d")).steps
    assert [has_params(steps[at], steps[at + 1]) for at in range(3)] == [True, False, False]


def test_what_bears_on_the_gpu_comes_first() -> None:
    """Settings that advice knows, options of the command line, hardware, other params, tags, and the command itself."""
    names = ("CUDA_HOME", "accuracy", "batch_size", "depth", "lr", "precision", "num_workers")
    tags = {"command": "python train.py --depth {0} lr={0}", "cluster": "{0}"}
    first, second = (
        configured(
            label,
            {name: "fp32" if name == "precision" and label == "a" else "16" for name in names}
            | dict.fromkeys(("CUDA_HOME", "accuracy", "depth", "lr"), label)
            | dict.fromkeys(("batch_size", "num_workers"), "1" if label == "a" else "2"),
            tags={name: text.format(label) for name, text in tags.items()},
            device=replace(GPU, driver=label),
        )
        for label in "ab"
    )
    assert list(changes(first, second)) == [
        *("num_workers", "precision", "batch_size"),
        *("depth", "lr"),
        "driver",
        *("CUDA_HOME", "accuracy"),
        *("cluster", "command"),
    ]


@pytest.mark.parametrize(
    ("after", "repeats"),
    [
        ("python train.py --workers 8 data", True),
        ("python train.py data --workers=8", True),
        ("python train.py --workers 8 other", False),
        ("python train.py --workers 8 --fast data", False),
    ],
)
def test_a_command_that_only_repeats_params_is_no_change_of_its_own(after: str, *, repeats: bool) -> None:
    """Any other word that differs is one; without a command on one side nothing is known of it."""
    before = configured("a", {"workers": "2"}, tags={"command": "python train.py data --workers 2"})
    found = compare_setups(
        *compare_configured(before, configured("b", {"workers": "8"}, tags={"command": after})).steps
    )
    assert [change.key for change in list_distinct_changes(found)] == ["workers", *([] if repeats else ["command"])]
    alone = compare_setups(*compare_configured(before, configured("b", {"workers": "8"})).steps)
    assert [change.key for change in list_distinct_changes(alone)] == ["workers", "command"]
