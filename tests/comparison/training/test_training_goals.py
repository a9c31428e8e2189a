"""What a person says of training metrics."""

from pathlib import Path

import pytest

from gpureport.comparison.training.training_goals import (
    NO_GOALS,
    QualityTarget,
    make_goals,
    parse_direction,
    parse_target,
    read_goals,
)
from gpureport.errors import SettingsError
from gpureport.settings import read_settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("val_accuracy=0.78", ("val_accuracy", 0.78)),
        ("val/acc=.78", ("val/acc", 0.78)),
        ("top-1 = 78", ("top-1", 78.0)),
        ("top-1=78%", None),
        ("a=b=2", ("a=b", 2.0)),
        ("loss=1e-3", ("loss", 0.001)),
        ("loss", None),
        ("=3", None),
        ("loss=nan", None),
        ("loss=low", None),
    ],
)
def test_targets(text: str, expected: tuple[str, float] | None) -> None:
    """A name and a number; whether a metric is logged in per cent is not known."""
    found = parse_target(text)
    assert (found and (found.name, found.value)) == expected


def test_directions() -> None:
    """A name and higher or lower."""
    assert parse_direction("my=metric=higher") == ("my=metric", True)
    assert parse_direction("score=lower") == ("score", False)
    assert [parse_direction(text) for text in ("score", "score=up", "=lower")] == [None, None, None]


def test_settings_are_overridden_by_the_command_line(tmp_path: Path) -> None:
    """Directions add up, the last of a name counting; the target is one."""
    path = tmp_path / "gpureport.toml"
    path.write_text('[training]\nbetter = { gain = "higher", cost = "lower" }\ntarget = "gain=3"\n', encoding="utf-8")
    goals = read_goals(read_settings(path))
    assert (goals.is_higher_better("gain"), goals.is_higher_better("cost"), goals.is_higher_better("x")) == (
        True,
        False,
        None,
    )
    assert goals.target == QualityTarget(name="gain", value=3.0)
    other = goals.with_overrides((("gain", False),), QualityTarget(name="val_acc", value=0.5))
    assert (other.is_higher_better("gain"), other.target) == (False, QualityTarget(name="val_acc", value=0.5))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[training]\ntarget = 'gain'\n", "'gain' is no target"),
        ("[training]\nbetter = { gain = 'up' }\n", "better must say higher or lower of each metric"),
        ("[training]\ngoal = 3\n", "unknown key 'goal' in [training]"),
    ],
)
def test_mistakes_in_settings_are_named(tmp_path: Path, text: str, what: str) -> None:
    """With their line."""
    path = tmp_path / "gpureport.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_goals(read_settings(path))
    assert (caught.value.what, caught.value.where) == (what, f"{path}:2")


def test_a_target_needs_a_direction() -> None:
    """Else it cannot be known when it is reached."""
    with pytest.raises(SettingsError, match="whether a higher gain is better is not known"):
        NO_GOALS.with_overrides((), QualityTarget(name="gain", value=3.0))
    assert make_goals({"gain": "higher"}, "gain=3").target == QualityTarget(name="gain", value=3.0)


@pytest.mark.parametrize(("better", "target"), [({"gain": "up"}, None), ({}, "gain")])
def test_plain_values_that_say_nothing_are_refused(better: dict[str, str], target: str | None) -> None:
    """As the Python API takes them."""
    with pytest.raises(ValueError, match="gain"):
        make_goals(better, target)
