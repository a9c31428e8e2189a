"""The four figures of steps."""

from gpureport.comparison.steps.compared_figures import UTILISATION
from gpureport.report.sections.head.tiles.step_tiles import build_step_tiles
from gpureport.report.wording.display import GAP
from tests.comparison.runs import compared, delta, level, sampled


def test_utilisation_and_its_change_are_of_the_same_time() -> None:
    """A tile that showed the mean of the whole job beside a change of training would contradict the table."""
    comparison = compared(sampled("a", step="base", util=level(40)), sampled("b", step="workers", util=level(80)))
    tile = build_step_tiles(comparison)[0]
    change = delta(comparison, UTILISATION)
    assert tile.label == "GPU utilisation"
    assert change.before is not None
    assert change.after is not None
    assert (tile.before, tile.value) == (f"{change.before:.0%}", f"{change.after:.0%}")
    assert tile.change is not None
    assert GAP in tile.change.text


def test_a_unit_of_both_ends_is_said_once() -> None:
    """Behind them, as in every other tile."""
    comparison = compared(sampled("a", step="base", util=level(40)), sampled("b", step="workers", util=level(80)))
    tile = build_step_tiles(comparison)[1]
    assert tile.label == "GPU time a run"
    assert tile.unit.startswith("GPU-")
    assert [text for text in (tile.before, tile.value) if not text or "GPU" in text] == []
