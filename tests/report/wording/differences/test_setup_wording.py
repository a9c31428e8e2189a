"""What changed in the set-up, in a line."""

from gpureport.comparison.setup.setup_changes import SettingValue, SetupChange
from gpureport.report.wording.differences.setup_wording import describe_values, list_setup_changes


def change(key: str, before: str | None, after: str | None, kind: str = "param") -> SetupChange:
    """Return a change of one value to another."""
    return SetupChange(
        base="a",
        step="b",
        kind=kind,
        key=key,
        before=before,
        after=after,
        values_before=(SettingValue(text=before, runs=1),),
        values_after=(SettingValue(text=after, runs=1),),
    )


def test_before_and_after() -> None:
    """What was not stated is said to be that; hardware has its words."""
    changes = [change("workers", "2", "14"), change("pin", None, "True"), change("gpu_models", "A", "B", "hardware")]
    assert list_setup_changes(changes) == "workers 2 → 14; pin not given → True; GPU models A → B"


def test_long_lists_are_cut() -> None:
    """Four are named, the others counted; long values are cut in their middle."""
    changes = [change(f"x{at}", "1", "2") for at in range(7)]
    assert list_setup_changes(changes) == "x0 1 → 2; x1 1 → 2; x2 1 → 2; x3 1 → 2; and 3 more"
    assert "…" in list_setup_changes([change("path", "/data/" + "a" * 40, "")])
    assert list_setup_changes([change("note", "x", "")]).endswith("→ empty")


def test_values_of_repetitions() -> None:
    """Each with the runs that have it."""
    values = (SettingValue(text="2", runs=2), SettingValue(text="14", runs=1), SettingValue(text=None, runs=1))
    assert describe_values(values) == "2 (2 runs), 14 (1 run) and not given (1 run)"
