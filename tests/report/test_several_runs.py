"""The content of a report on several runs."""

from dataclasses import replace

from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP
from gpureport.testing import Analysis, Finding, Recording, Work
from tests.report import examples

GAPS = tuple(examples.idle_gap(f"gpu:{gpu}", at, at + 20) for gpu in (0, 1) for at in (100, 200, 300))


def report(*runs: tuple[Recording, Analysis], price: float | None = None) -> Report:
    """Return the content for some runs."""
    return build(runs, title=None, command="gpureport report a.csv", gpu_hour_price=price, version="0.1.0")


def plain(text: str) -> str:
    """Return text with ordinary spaces."""
    return text.replace(GAP, " ")


def chain(*findings: tuple[Finding, ...]) -> Report:
    """Return the content of three steps, with the findings of each."""
    idles = (180.0, 120.0, 30.0)
    names = ("baseline", "bf16", "8 workers")
    work = Work(amount=1000, unit="steps")
    return report(
        *(
            examples.pair(examples.run(name, work=work), found, idle=idle)
            for name, found, idle in zip(names, findings, idles, strict=True)
        )
    )


def test_three_steps_are_set_side_by_side() -> None:
    """The verdict is on the work done, the table has a row a step, and single runs are not called better."""
    content = chain((), (), ())
    assert content.verdict.sentence == "No clear change in GPU time per training step."
    table = content.steps
    assert table is not None
    assert [row.head.text for row in table.rows] == ["baseline", "bf16", "8 workers"]
    assert {change.verdict for row in table.rows for cell in row.cells if (change := cell.change)} <= {
        "no clear change"
    }
    assert [bar.label for bar in content.gpu_time] == ["baseline", "bf16", "8 workers"]
    # the method section says what the words mean, whether they are used or not
    said = repr(replace(content, spent=None, actions=())).replace(repr(content.method), "")
    assert "better" not in said
    assert "worse" not in said


def test_findings_of_earlier_steps_say_what_became_of_them() -> None:
    """Those of the last step are open and come first."""
    content = chain(GAPS, (examples.throttling("gpu:0", 0, 10),), GAPS[:1])
    assert [(card.run, card.kind, card.status) for card in content.findings] == [
        ("8 workers", "idle_gap", "open"),
        ("baseline", "idle_gap", "still found in the last step"),
        ("bf16", "thermal_throttle", "not found in the last step"),
    ]


def test_the_same_of_earlier_steps_is_told_briefly() -> None:
    """Where the last step says the same of it, the step that lost most tells it for the others."""
    content = chain((examples.idle_gap("gpu:0", 100, 130),), (examples.idle_gap("gpu:0", 100, 150),), GAPS[:1])
    assert [(card.run, card.status, card.repeats) for card in content.findings] == [
        ("8 workers", "open", ""),
        ("bf16", "still found in the last step", ""),
        ("baseline", "still found in the last step", "F2"),
    ]


def test_a_finding_that_could_not_be_judged_again_is_not_solved() -> None:
    """What the last step could not judge is not called gone."""
    first = examples.pair(examples.run("a"), (replace(GAPS[0], kind="cpu_bound"),))
    content = report(first, examples.pair(examples.run("b"), (), examples.NOT_JUDGED))
    assert content.findings[0].status == "the last step cannot tell"


def test_replicates_share_a_bar_and_keep_their_names() -> None:
    """Two runs of one step are one row and one bar, but two timelines."""
    runs = [examples.pair(examples.run(name, step="s")) for name in ("first", "second")]
    content = report(*runs)
    assert content.steps is None
    assert [bar.label for bar in content.gpu_time] == ["s"]
    assert [run.label for run in content.timeline] == ["s, first", "s, second"]


def test_the_same_of_other_runs_of_a_step_is_told_briefly() -> None:
    """The run that lost most is told in full, the others after it, whatever else there is; other steps apart."""
    first, *last = (
        examples.pair(examples.run(name, step=step), (examples.idle_gap("gpu:0", 100, 100 + size), *more))
        for name, step, size, more in (
            ("a", "one", 50.0, ()),
            ("b", "two", 20.0, ()),
            ("c", "two", 40.0, (examples.throttling("gpu:1", 0, 150),)),
            ("d", "two", 10.0, ()),
        )
    )
    content = report(first, *last)
    assert [(card.id, card.run, card.kind, card.repeats) for card in content.findings] == [
        ("F1", "two, c", "idle_gap", ""),
        ("F2", "two, b", "idle_gap", "F1"),
        ("F3", "two, d", "idle_gap", "F1"),
        ("F4", "two, c", "thermal_throttle", ""),
        ("F5", "one", "idle_gap", ""),
    ]
    page, words = html.render(content), plain(terminal.render(content))
    assert words.count("Prefetch the next batch") == 2
    assert 'id="F2"' in page
    assert page.count('<article class="card') == 3
    assert "F2 warning: as F1, up to 20.0 GPU-s" in words


def test_a_name_that_ends_with_its_step_says_it_once() -> None:
    """As names do that are made of folders."""
    content = report(*(examples.pair(examples.run(f"{folder}/s", step="s")) for folder in ("c1", "c2")))
    assert [run.label for run in content.timeline] == ["c1/s", "c2/s"]


def test_few_gpus_are_said_once_to_be_few() -> None:
    """Of three runs with two GPUs each, the first says it."""
    content = chain((), (), ())
    assert [bool(run.same) for run in content.gpus] == [True, False, False]


def test_a_run_that_is_called_after_its_step_is_called_so_once() -> None:
    """Folders of repetitions stand below that of their step, or above it; another name stands beside the step."""
    names = ("slow/1", "try/slow", "third")
    made = report(*(examples.pair(examples.run(name, step="slow")) for name in names))
    assert [timeline.label for timeline in made.timeline] == ["slow/1", "try/slow", "slow, third"]
