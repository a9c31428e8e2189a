"""The table of steps: what stands beside the training rate."""

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.sections.comparison.step_table import build_step_table
from tests.comparison.runs import compared, level, sampled


def logged(name: str, step: str, rate: float) -> SampledRun:
    """Return a run of eleven minutes that logs how fast it works."""
    points = [(float(at), at, "samples_per_second", rate + at % 3) for at in range(5, 650, 5)]
    return sampled(name, step=step, training=points, util=level(80, 650))


def test_one_run_against_several_is_not_called_one_run_each() -> None:
    """The training rate stands with the verdict in the words of every other figure."""
    table = build_step_table(compared(logged("a", "old", 100), *(logged(f"b{k}", "new", 300 + k) for k in range(3))))
    place = next(at for at, title in enumerate(table.columns[1:]) if title.startswith("Training"))
    change = table.rows[1].cells[place].change
    assert change is not None
    assert (change.text, change.verdict) == ("+199%", "unconfirmed (one run on one side)")


def test_at_most_six_figures_stand_beside_a_step() -> None:
    """The quality of the training among them; the rate of the whole job gives way to it."""
    runs = [logged(f"{step}{k}", step, rate) for step, rate in (("old", 100), ("new", 300)) for k in range(2)]
    table = build_step_table(compared(*runs))
    assert len(table.columns) <= 7
    assert len({len(table.columns), *(len(row.cells) + 1 for row in table.rows)}) == 1


def test_the_note_names_what_grey_means_in_this_table() -> None:
    """One run each gives no interval and not enough data, which is no "no clear change"; only figures shown move."""
    (note,) = build_step_table(compared(logged("a", "old", 100), logged("b", "new", 300))).notes
    assert note.startswith("Change from the row above")
    assert "unconfirmed (one run each)" in note
    assert "no clear change" not in note
    assert "Cost" not in note


def test_what_a_step_changed_stands_below_its_name() -> None:
    """Without the length of the job, which makes it no faster, and unless its name says it."""
    params = [("workers", "1"), ("steps", "200")], [("workers", "4"), ("steps", "700")]
    first, second = (
        sampled(f"r{place}", step=step, util=level(80, 300, place), params=given)
        for place, (step, given) in enumerate(zip(("base", "loader"), params, strict=True))
    )
    for label, said in (("loader", "workers 1 → 4"), ("more-workers", "workers 1 → 4"), ("4-workers", "")):
        table = build_step_table(compared(first, second.in_step(label)))
        assert [row.head.small for row in table.rows] == ["", said]
