"""The table of gains in words: figures with verdicts, what changed, and advice that was followed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.number_format import MINUS
from gpureport.report.formats.text import terminal_gains
from gpureport.report.model.gain_table import GainTable
from gpureport.report.sections.gains.gain_table import build_gain_table
from gpureport.report.wording.display import GAP
from gpureport.report.wording.terminal_lines import Page, render_lines
from gpureport.testing import Comparison, Work
from tests.comparison.configured_runs import advising, compare_configured, configured
from tests.comparison.runs import level, sampled
from tests.report import sample_reports
from tests.samples.archives import unpack


def table(comparison: Comparison) -> GainTable:
    """Return the table of gains."""
    return build_gain_table(comparison, pair_steps(comparison))


def facts(found: GainTable, row: int) -> dict[str, str]:
    """Return what is said in words in one row."""
    return {fact.name: fact.text for fact in found.rows[row].facts}


def runs(
    step: str, seconds: int, count: int = 3, price: float | None = None, power: float | None = None
) -> list[SampledRun]:
    """Return repetitions that do the same work in about so many seconds."""
    watts: dict[str, Any] = {} if power is None else {"power": power}
    made = [
        sampled(
            f"{step} {at}",
            step=step,
            work=Work(amount=1000, unit="images"),
            params=[("workers", step)],
            util=[level(90, seconds + at, at)],
            **watts,
        )
        for at in range(count)
    ]
    return [replace(run, gpu_hour_price=price) for run in made]


def test_figures_with_their_verdicts() -> None:
    """Half the time is twice as fast and saves half; only an established verdict may have a colour."""
    found = table(compare([*runs("2", 400), *runs("14", 200)]))
    assert found.columns == ("Step", "Whole job", "Training alone", "GPU time")
    first, second = found.rows
    assert first.cells[0].text.endswith(f"{GAP}images/s")
    assert (first.head.text, first.head.small, first.facts) == ("2", "3 runs", ())
    job, _, gpu_time = second.cells
    assert job.text.startswith(("1.9", "2.0"))
    assert gpu_time.text == f"{MINUS}50%"
    assert (gpu_time.verdict, gpu_time.established) == ("better", True)
    # 400 and 200 s agree to the second: the ends of the interval print as the change does
    assert gpu_time.interval == ""
    assert " to " in job.interval
    assert "Cost: no price given (--gpu-hour-price)." in found.notes
    assert "Energy: power was not recorded throughout." in found.notes


def test_each_figure_per_unit_of_work_names_its_own_batch() -> None:
    """Energy and cost are of a million images here, GPU time of a thousand: no note gives one batch for all."""
    found = table(compare([*runs("2", 400, price=2.0, power=30.0), *runs("14", 200, price=2.0, power=30.0)]))
    texts = [cell.text for cell in found.rows[0].cells]
    assert dict(zip(found.columns[1:], (text.partition(" per ")[2] for text in texts), strict=True)) == {
        "Whole job": "",
        "Training alone": "",
        "GPU time": "1,000 images",
        "Cost": "million images",
        "Energy": "million images",
    }
    assert not any(" per " in note for note in found.notes)


def test_single_runs_are_unconfirmed() -> None:
    """The size is shown without a colour, and the note says what to do."""
    found = table(compare([*runs("2", 1400, 1), *runs("14", 700, 1)]))
    cells = [cell for cell in found.rows[1].cells if cell.verdict == "unconfirmed"]
    assert cells
    assert not any(cell.established for row in found.rows for cell in row.cells)
    assert "Unconfirmed: one run each; repeat the step before you rely on it." in found.notes


def test_prices_make_a_column() -> None:
    """Cost stands beside GPU time where each run has a price."""
    found = table(compare([*runs("2", 400, price=2.0), *runs("14", 200, price=2.0)]))
    assert found.columns[-1] == "Cost"
    assert found.rows[1].cells[-1].text == found.rows[1].cells[-2].text
    assert "Cost: no currency given (--gpu-hour-price '2.49 EUR')." in found.notes


def test_all_steps_together() -> None:
    """Of three steps a last row sums up, and each later row says what it comes to since the first."""
    found = table(compare([*runs("2", 400), *runs("4", 200), *runs("8", 100)]))
    assert [row.head.text for row in found.rows] == ["2", "4", "8", "All steps together"]
    assert "Since first" not in facts(found, 1)
    since = facts(found, 2)["Since first"]
    assert since.startswith("whole job 4.0")
    verdicts = [cell.verdict for cell in found.rows[3].cells[:2]]
    assert [part.rpartition(", ")[2] for part in since.split("; ")] == verdicts
    assert found.rows[3].cells[2].text == f"{MINUS}75%"
    assert facts(found, 3)["Advised"] == "No step is known to have done what a finding had advised."


def test_without_work_the_words_remain() -> None:
    """No figure, but what changed and what was advised; the note says what is missing."""
    before = configured("a", {"workers": "2"}, findings=[advising("loader_workers")])
    found = table(compare_configured(before, configured("b", {"workers": "14"})))
    assert found.columns == ("Step",)
    assert facts(found, 1) == {
        "Changed": "workers 2 → 14",
        "Findings": "Gone: Low use, cause unknown.",
        "Advised": "More loader workers, advised in a (Low use, cause unknown) → applied → outcome "
        "not known, as the work was not stated; the finding is gone.",
    }
    assert found.notes == ("Gains are per unit of work, and the work is not known: state it with --work N:UNIT.",)


@pytest.mark.parametrize(
    ("other", "applied"),
    [("steps", " → applied → "), ("lr", " → applied, together with other changes → ")],
)
def test_a_change_of_the_length_of_the_job_is_no_other_change(other: str, applied: str) -> None:
    """What advice brought is not blurred by how long the job ran."""
    before = configured("a", {"workers": "2", other: "200"}, findings=[advising("loader_workers")])
    found = table(compare_configured(before, configured("b", {"workers": "14", other: "700"})))
    assert applied in facts(found, 1)["Advised"]


@pytest.mark.parametrize(
    ("before", "after", "changed", "advised"),
    [
        ({}, {}, "not recorded (state it with --param)", None),
        ({"lr": "1"}, {"lr": "1"}, "nothing that was recorded", None),
        ({"lr": "1"}, {"lr": "2"}, "lr 1 → 2", "No change is recognised as one that an earlier finding advised."),
    ],
)
def test_what_is_said_without_advice(
    before: dict[str, str], after: dict[str, str], changed: str, advised: str | None
) -> None:
    """Not recorded is told from unchanged."""
    found = facts(table(compare_configured(configured("a", before), configured("b", after))), 1)
    assert (found["Changed"], found.get("Advised")) == (changed, advised)


def test_what_may_have_been_advised_is_said() -> None:
    """A base that leaves its workers to the program, and a step that names them: nobody knows whether they are more."""
    before = configured("a", {"lr": "1"}, findings=[advising("loader_workers")])
    found = table(compare_configured(before, configured("b", {"lr": "1", "workers": "8"})))
    assert facts(found, 1)["Advised"] == (
        "Perhaps: more loader workers, advised in a (Low use, cause unknown); "
        "not every run of the two steps names the setting."
    )


def test_one_run_that_does_not_name_the_setting_is_no_denial() -> None:
    """The first run of the base was recorded before its workers were named."""
    finding = advising("loader_workers")
    base = [configured("a", {"lr": "1"}, findings=[finding]), configured("a", {"lr": "1", "workers": "1"})]
    found = table(compare_configured(*base, configured("b", {"lr": "1", "workers": "4"})))
    assert facts(found, 1)["Advised"].startswith("Perhaps: more loader workers, advised in a")


@pytest.mark.parametrize(
    ("before", "advised"),
    [
        (
            {"num_workers": "2"},
            "More loader workers, advised in base (Waiting for data: one CPU core saturated) → applied",
        ),
        ({"lr": "1"}, "Perhaps: more loader workers, advised in base (Waiting for data: one CPU core saturated); not"),
        ({"threads": "2"}, "No change is recognised as one that"),
    ],
)
def test_a_starved_base_and_more_workers(before: dict[str, str], advised: str) -> None:
    """The recorded job: whatever the base says of its workers, nothing false is said of the advice."""
    later = {"threads": "14"} if "threads" in before else {"num_workers": "14"}
    steps = {"1-starved": ("base", before), "2-more-workers": ("workers", {"lr": "1"} | later)}
    analyses = []
    for folder, (step, params) in steps.items():
        (made,) = gpureport.read(sample_reports.SAMPLES / "recorded/training_steps" / folder / "1")
        run = replace(made.run, step=step, params=tuple(({"lr": "1"} | params).items()))
        analyses.append(gpureport.analyze(replace(made, run=run)))
    assert facts(table(gpureport.compare(analyses)), 1)["Advised"].startswith(advised)


def test_the_potential_is_a_bound() -> None:
    """One tenth idle: at most 1.11 times as fast, and no promise."""
    potential = table(compare_configured(configured("a"), configured("b"))).potential
    assert potential == (
        "At most 1.11 times as fast without what b loses: idle 10%. This is an upper bound for the whole job, not "
        "a promise."
    )


def test_lines_fit_a_terminal() -> None:
    """Five figures a row fit 80 columns, and no verdict is broken."""
    priced = [replace(run, gpu_hour_price=2.0) for run in (*runs("2", 400), *runs("14", 390), *runs("16", 380))]
    text = render_lines(terminal_gains.gain_lines(table(compare(priced)), Page(width=80, ascii=False)), colour=False)
    assert max(map(len, text.splitlines())) <= 80
    assert "no clear change" in text or "better" in text


def test_the_recorded_chain_followed_advice(tmp_path: Path) -> None:
    """MLflow's runs: the second step did what a finding of the first advised, the fifth what one of the fourth did."""
    unpack(sample_reports.SAMPLES / "recorded/training_steps/mlruns.tar.gz", tmp_path)
    found = sorted(gpureport.read(f"mlflow:{tmp_path / 'mlruns'}"), key=lambda recording: recording.run.started)
    comparison = gpureport.compare([gpureport.analyze(recording) for recording in found])
    gains = table(comparison)
    assert [facts(gains, row)["Changed"] for row in range(1, 5)] == [
        "workers 2 → 14",
        "pin False → True",
        "amp False → True",
        "batch 64 → 256",
    ]
    outcome = facts(gains, 1)["Advised"]
    assert outcome.startswith("More loader workers, advised in 1-starved (")
    assert f"→ applied → GPU time {MINUS}57%, unconfirmed" in outcome
    assert facts(gains, 2)["Advised"] == "No change is recognised as one that an earlier finding advised."
    assert facts(gains, 4)["Advised"].startswith("Larger batch, advised in 4-mixed-precision (")
    assert facts(gains, 5)["Advised"].startswith(
        "At least 2 of 4 steps did what a finding had advised: more loader workers"
    )


def test_a_gain_that_cost_quality_says_so() -> None:
    """Advice that was followed with success and a loss of accuracy is not told as a success alone."""
    accuracy = {"64": 0.79, "256": 0.61}
    made = [
        sampled(
            f"{batch} {at}",
            step=batch,
            work=Work(amount=1000, unit="images"),
            params=[("batch", batch)],
            training=[(float(each), each, "val_accuracy", value + 0.001 * at) for each in range(1, 61)],
            util=[level(50, seconds + at, at)],
            memory=[np.full(seconds + at, 10.0)],
        )
        for (batch, value), seconds in zip(accuracy.items(), (400, 200), strict=True)
        for at in range(3)
    ]
    first = replace(
        made[0], analysis=replace(made[0].analysis, findings=(advising("larger_batch", kind="mem_headroom"),))
    )
    found = facts(table(compare([first, *made[1:]])), 1)
    assert found["Quality"].startswith("val_accuracy 0.791 → 0.611, worse")
    assert "GPU time" in found["Advised"]
    assert "but worse: val_accuracy" in found["Advised"]
