"""What a change saves in money, in one sentence of the lead."""

from dataclasses import replace

from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.sections.head.lead import write_step_lead
from gpureport.report.sections.head.money_sentences import describe_saving, describe_start_up_cost, explain_missing_cost
from gpureport.report.sections.head.tiles.step_tiles import build_step_tiles
from gpureport.report.wording.display import GAP
from gpureport.testing import Work
from gpureport.testing import steps as blocks
from tests.comparison.runs import compared, level, sampled

WORK = Work(amount=1000, unit="images")


def run(
    name: str, images: float | None, price: float | None = 3.6, step: str | None = None, seconds: int = 300
) -> SampledRun:
    """Return a run of five minutes with its work and its price in dollars."""
    work = None if images is None else Work(amount=images, unit="images")
    made = sampled(name, step=step, util=level(90, seconds), work=work)
    cost = None if price is None else calculate_cost(made.analysis, Prices(currency="USD").with_overrides(price, None))
    return replace(made, analysis=replace(made.analysis, cost=cost), gpu_hour_price=price)


def steps(*images: tuple[float | None, ...], price: float = 3.6) -> list[SampledRun]:
    """Return runs of steps, each with its work."""
    return [
        run(f"{place}{k}", each, price, step=f"s{place}")
        for place, step in enumerate(images)
        for k, each in enumerate(step)
    ]


def test_a_saving_is_told_with_its_interval() -> None:
    """At 3.60 an hour 300 s cost 0.30: 300 dollars per million images, then 150."""
    comparison = compared(*steps((990, 1000, 1010), (1990, 2000, 2010)))
    text = describe_saving(comparison)
    assert text.startswith("Saves $149.51 (")
    assert " to $" in text
    assert text.endswith(") per million images.")
    assert text in tuple(write_step_lead(comparison))


def test_a_dearer_step_costs_more() -> None:
    """A saving is never negative."""
    text = describe_saving(compared(*steps((1990, 2000, 2010), (990, 1000, 1010))))
    assert text.startswith("Costs $149.51 (")
    assert text.endswith(") more per million images.")


def test_a_difference_of_single_runs_is_unconfirmed() -> None:
    """It stands before the advice to repeat the steps."""
    comparison = compared(*steps((1000,), (4000,)))
    text = describe_saving(comparison)
    assert text.startswith("Costs $22")
    assert text.endswith(" less per million images, unconfirmed.")
    assert next(iter(write_step_lead(comparison))) == text


def test_no_saving_where_none_is_shown() -> None:
    """Equal steps save nothing; without a price there is no cost at all."""
    assert not describe_saving(compared(*steps((990, 1000, 1010), (991, 1001, 1011))))
    assert not describe_saving(compared(run("a", 1000, None), run("b", 4000, None)))


def test_a_price_without_work_says_what_is_missing() -> None:
    """What a run cost is known all the same."""
    comparison = compared(run("a", None, step="a"), run("b", None, step="b", seconds=600))
    text = explain_missing_cost(comparison).replace(GAP, " ")
    assert text == (
        "A run cost $0.30, then $0.60; no cost per unit without the work done "
        "(--work 9600:images, for each source where they differ)."
    )
    assert next(iter(write_step_lead(comparison))).replace(GAP, " ") == text


def test_equal_costs_are_said_once() -> None:
    """Of two steps, or of the ends of a chain."""
    advice = "state the work (--work 9600:images, for each source where they differ) to compare the cost per unit."
    for count, which in ((2, "Both"), (3, "First and last step")):
        text = explain_missing_cost(compared(*steps(*[(None,)] * count))).replace(GAP, " ")
        assert text == f"{which} cost $0.30 a run; {advice}"


def test_a_missing_cost_is_not_told_without_need() -> None:
    """Neither without a price, nor where the cost is shown; of one price of two the other is missing."""
    assert not explain_missing_cost(compared(run("a", None, None), run("b", None, None)))
    assert not explain_missing_cost(compared(run("a", 1000), run("b", 1000)))
    text = explain_missing_cost(compared(run("a", 1000), run("b", 1000, None)))
    assert text == "No cost per unit of work: not every GPU has a price."


def test_a_cost_with_much_start_up_is_told_without_it_too() -> None:
    """Of 300 s the GPU is busy for 240: a longer run pays four fifths."""
    made = [run(name, 1000) for name in "ab"]
    idle = [sampled(each.analysis.run.name, util=blocks((0, 60), (90, 240)), work=WORK) for each in made]
    runs = [
        replace(short, gpu_hour_price=3.6, analysis=replace(short.analysis, cost=long.analysis.cost))
        for short, long in zip(idle, made, strict=True)
    ]
    comparison = compared(*runs)
    text = describe_start_up_cost(comparison).replace(GAP, " ")
    assert text == (
        "The cost includes start-up and end, 20% of a run in b: at the training rate alone it is $240.00 per million "
        "images, and longer runs come closer to that."
    )
    assert build_step_tiles(comparison)[1].context.endswith("; $240.00 at the training rate alone")


def test_a_cost_with_little_start_up_needs_no_note() -> None:
    """Below a twentieth of the run it makes no difference."""
    comparison = compared(run("a", 1000), run("b", 1000))
    assert not describe_start_up_cost(comparison)
    assert "training rate" not in build_step_tiles(comparison)[1].context
