"""Figures in words, and commands that would answer a question."""

import pytest

from gpureport.analysis.rules import phrases


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.005, "5 ms"), (4.2, "4.2 s"), (42, "42 s"), (125, "2 min 5 s"), (3599.6, "1 h"), (8000, "2 h 13 min")],
)
def test_durations_are_in_their_two_largest_units(seconds: float, words: str) -> None:
    """A person reads minutes, not thousands of seconds."""
    assert phrases.duration(seconds) == words


def test_small_shares_keep_a_decimal() -> None:
    """0.4% is not 0%."""
    assert [phrases.percent(ratio) for ratio in (0, 0.004, 0.42, 1)] == ["0%", "0.4%", "42%", "100%"]


def test_gpus_are_named_or_counted() -> None:
    """All of them together, a few by name, the node where there are several."""
    everybody = ["gpu:0", "gpu:1", "gpu:2"]
    assert phrases.gpu_names(everybody, everybody) == "all 3 GPUs"
    assert phrases.gpu_names(everybody[:2], everybody) == "GPUs 0 and 1"
    assert phrases.gpu_names(["gpu:1", "gpu:0"], ["gpu:0", "gpu:1"]) == "both GPUs"
    assert phrases.gpu_names(["gpu:10", "gpu:2"], everybody) == "GPUs 2 and 10"
    assert phrases.gpu_name("node_1/gpu:4") == "GPU 4 of node_1"


def test_small_sizes_are_in_mebibytes() -> None:
    """84 MiB is not 0.1 GiB."""
    assert [phrases.size(84 * 2**20), phrases.size(1.5 * 2**30)] == ["84 MiB", "1.5 GiB"]


def test_nearly_ten_seconds_are_ten() -> None:
    """No decimal that says more than the text beside it."""
    assert [phrases.duration(seconds) for seconds in (9.94, 9.97, 10.2)] == ["9.9 s", "10 s", "10 s"]
