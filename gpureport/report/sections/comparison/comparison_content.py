"""What `gpureport compare` shows: the chain of steps, and of every link what changed and what may be doubted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_pairs import StepPair, pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import SHORTEST_SECONDS, recorded_seconds
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.steps.verdict_reason import Reason
from gpureport.comparison.study.factors import Factor, describe_factors
from gpureport.comparison.study.study import Study, build_study, select_focus
from gpureport.comparison.training.training_goals import NO_GOALS, TrainingGoals
from gpureport.comparison.verdicts.repetition_noise import MetricNoise, Noise
from gpureport.recording import Recording
from gpureport.report.model.comparison_parts import ComparisonPart, IntervalChart, StepPairView
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.gain_table import GainTable
from gpureport.report.model.shapes import HEADING, Fact, ReportSection, Table
from gpureport.report.runs import quiet_line, step_chain
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.comparison import (
    figure_formats,
    remaining_loss_facts,
    repetition_hint,
    step_charts,
    step_pair_view,
    step_summary_table,
    step_table,
    target_facts,
)
from gpureport.report.sections.findings import finding_cards, open_findings
from gpureport.report.sections.gains import gain_table
from gpureport.report.sections.head import change_notes, notes, verdict
from gpureport.report.sections.head.headlines import step_headline
from gpureport.report.sections.study.study_content import build_study_sections
from gpureport.report.wording import display, numbered_labels
from gpureport.report.wording.differences import difference_wording
from gpureport.report.wording.differences.comparison_reasons import (
    CHECKS,
    describe_reason,
)
from gpureport.report.wording.differences.difference_wording import FigureFormat
from gpureport.report.wording.grouping import group_holders

_LABEL = 22
"""Most characters of the name of a step before a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A whole comparison, in the order it is read. Text formats show every field with a heading.

    Attributes:
        subtitle: runs, steps and hardware.
        sentence: what may be said of the first and the last step.
        notes: what to know before acting on it.
        gains: the table of gains; None of groups, which are no chain.
        study: the best group and what each setting did; nothing where the steps are a chain.
        steps: figures of every step and replicate; None where one link says all.
        links: every step against the one before.
        since_first: what may be said of steps between second and last against the first.
        charts: figures of every step with their intervals; none for a pair.
        groups: utilisation and work per GPU-hour of every step with their intervals; None for a pair.
        remaining: what the last step still loses, of groups the best one, and the largest finding left.
        advice: what is open in the same step: what follows from it, and the steps to take.
        across: what all steps together say.
    """

    subtitle: str
    sentence: str
    notes: tuple[str, ...]
    gains: GainTable | None
    study: tuple[ReportSection, ...] = field(metadata={HEADING: "Study"})
    steps: Table | None = field(metadata={HEADING: "Steps"})
    links: tuple[StepPairView, ...]
    since_first: tuple[Fact, ...] = field(metadata={HEADING: "Since the first step"})
    charts: tuple[IntervalChart, ...]
    groups: Table | None = field(metadata={HEADING: "Steps as groups"})
    remaining: tuple[Fact, ...] = field(metadata={HEADING: "What is still lost"})
    advice: tuple[Fact, ...] = field(metadata={HEADING: "What to do next"})
    across: tuple[Fact, ...] = field(metadata={HEADING: "Over all steps"})


def build_comparison_view(
    runs: Sequence[tuple[Recording, Analysis]],
    measured: Sequence[SampledRun] | None = None,
    noise: Noise | None = None,
    by: Sequence[Factor] = (),
    goals: TrainingGoals = NO_GOALS,
) -> ComparisonView:
    """Return the comparison of runs in the order of their steps.

    Args:
        runs: recordings with their analyses.
        measured: the same runs as a comparison takes them, where that is known already.
        noise: what repetitions in the store differ by, where that was measured.
        by: settings whose values make the groups; none where the steps are a chain.
        goals: what a person says of training metrics.
    """
    named = step_chain.shorten_names(runs)
    sampled = step_chain.apply_names(named, measured) if measured else step_chain.sample_runs(named)
    comparison = compare(sampled, noise, goals)
    inputs = step_chain.order_by_step(named, comparison)
    found = pair_steps(comparison)
    study = build_study(comparison, by) if by else None
    repetitions = repetition_hint.describe_repetitions(comparison)
    sentence, details = _describe_outcome(comparison, found, study, repetitions)
    several = len(comparison.steps) > 2 or len(inputs) > len(comparison.steps)  # noqa: PLR2004 - one link is a pair
    return ComparisonView(
        subtitle=quiet_line.build_subtitle(inputs, display.clean(describe_factors(study.by)) if study else ""),
        sentence=sentence,
        notes=tuple(_notes(comparison, found, noise, details, repetitions, is_study=study is not None)),
        gains=None if study else gain_table.build_gain_table(comparison, found),
        steps=step_table.build_overview(comparison) if several else None,
        links=step_pair_view.build_step_pair_views(comparison, found, inputs),
        since_first=tuple(_since_first(comparison)),
        charts=step_charts.build_step_charts(comparison, study) if several else (),
        groups=step_summary_table.build_step_summary_table(comparison.steps) if several else None,
        study=build_study_sections(comparison, study) if study else (),
        remaining=tuple(_remaining(comparison, inputs, study)),
        across=tuple(_describe_all_steps(comparison, study)),
        advice=tuple(_advise(comparison, inputs, study)),
    )


def _describe_outcome(
    comparison: Comparison, found: Sequence[StepPair], study: Study | None, repetitions: str
) -> tuple[str, tuple[str, ...]]:
    """Return what may be said of the first and the last step, and the details of that sentence."""
    sentence, details = verdict.describe_comparison(comparison, study, repetitions)
    if sentence and any(link.comparable for link in found):
        return sentence, details
    fallen = step_headline.describe_quality_alone(comparison)
    return fallen or "These recordings can't be compared.", details


def build_comparison_part(
    comparison: Comparison, inputs: Sequence[ReportRun], cards: tuple[FindingCard, ...], study: Study | None
) -> ComparisonPart:
    """Return what a report says of its steps beside their table.

    Args:
        comparison: the steps.
        inputs: the runs step by step.
        cards: the findings of the report.
        study: the groups; None where the steps are a chain.
    """
    found = pair_steps(comparison)
    charts = step_charts.build_step_charts(comparison, study)
    return ComparisonPart(
        grouped=display.clean(describe_factors(study.by)) if study else "",
        charts=charts,
        legend=step_charts.describe_marks(charts),
        study=build_study_sections(comparison, study) if study else (),
        estimates=step_summary_table.build_step_summary_table(comparison.steps, bars=False),
        links=step_pair_view.build_step_pair_views(comparison, found, inputs),
        remaining=tuple(_remaining(comparison, inputs, study, cards)),
        across=tuple(_describe_all_steps(comparison, study)),
        gains=None if study else gain_table.build_gain_table(comparison, found),
    )


def _remaining(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None, cards: tuple[FindingCard, ...] = ()
) -> Iterator[Fact]:
    """Yield what the step in focus still loses; nothing where it is too short to tell."""
    step, runs = _select_focus(comparison, inputs, study)
    if recorded_seconds(step.analyses) >= SHORTEST_SECONDS:
        first = None if study else comparison.steps[0]
        yield from remaining_loss_facts.describe_remaining_loss(step, first, runs[-1], cards)


def _advise(comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None) -> Iterator[Fact]:
    """Yield what is open in the step in focus; of groups, which one that is comes first."""
    step, runs = _select_focus(comparison, inputs, study)
    cards = finding_cards.build_cards(runs if study else inputs)
    facts = tuple(open_findings.build_open_finding_facts(cards, len(step.runs)))
    if study and facts:
        yield Fact(name="Group", text=display.clean(step.label))
    yield from facts


def _select_focus(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None
) -> tuple[Step, Sequence[ReportRun]]:
    """Return the step that losses and advice are of, with its runs: the last of a chain; of groups the best known."""
    step = select_focus(comparison, study)
    place = [each.label for each in comparison.steps].index(step.label)
    start = sum(len(each.runs) for each in comparison.steps[:place])
    return step, inputs[start : start + len(step.runs)]


def _describe_all_steps(comparison: Comparison, study: Study | None) -> Iterator[Fact]:
    """Yield what all steps together say: the time to the target, and how work scales."""
    yield from target_facts.build_target_facts(comparison)
    yield from step_summary_table.build_scaling_facts(comparison.steps, select_focus(comparison, study))


def _notes(  # noqa: PLR0913 - what notes depend on, each by name
    comparison: Comparison,
    found: Sequence[StepPair],
    noise: Noise | None,
    details: Sequence[str],
    repetitions: str,
    *,
    is_study: bool,
) -> Iterator[str]:
    """Yield what to know of a comparison, with the details of its sentence."""
    short = verdict.describe_short_steps(comparison)
    if short and short not in details:
        yield short
    if not any(link.comparable for link in found):
        return
    yield from details
    if not is_study:
        yield from change_notes.list_other_changes(comparison)
    # that a step is too short is said above
    unlike = (check.check for link in found for check in link.doubts if not check.bars_itself)
    doubts = list(dict.fromkeys(CHECKS[check] for check in unlike))
    if doubts:
        yield f"Not recorded alike, as said below: {display.join_words(doubts)}."
    if repetitions and repetitions not in details:
        yield repetitions
    yield from filter(None, (step_table.describe_allowance(comparison),))
    if noise is not None:
        yield _noise(noise)
    if not all(step.work_unit for step in comparison.steps):
        yield notes.NO_WORK_GIVEN


def _noise(noise: Noise) -> str:
    """Return what repetitions in the store differ by."""
    margins = list_noise_margins(noise)
    if not margins:
        return "The store holds no step with repetitions, so its own noise is not known and the usual margins are used."
    return (
        f"Two runs of one step of this store differ by less than this in 19 of 20 cases: {display.join_words(margins)}."
    )


def list_noise_margins(noise: Noise) -> list[str]:
    """Return for each figure how far two runs of one step commonly lie apart."""
    return [_margin(each, figure_formats.choose_format(each.metric, None)) for each in noise.metrics]


def _margin(noise: MetricNoise, shown: FigureFormat) -> str:
    size = display.percent(noise.margin) if noise.relative else shown.scale.format(noise.margin)
    return f"{shown.noun} {size}"


def _since_first(comparison: Comparison) -> Iterator[Fact]:
    """Yield what may be said of each step after the second against the first; of the last the headline does."""
    first = comparison.steps[0].label
    found = (comparison.judged(first, step.label) for step in comparison.steps[2:-1])
    judged = [delta for delta in found if delta is not None and delta.difference is not None]
    for (metric, _, _), deltas in group_holders((_since_first_key(delta), delta) for delta in judged).items():
        unit = next(step.work_unit for step in comparison.steps if step.label == deltas[0].step)
        shown = figure_formats.choose_format(metric, unit, units=figure_formats.gather_work_units(comparison))
        if len(deltas) > 1:
            yield Fact(name=Verdict.NOT_ENOUGH_DATA.value.capitalize(), text=_withheld(deltas, shown))
        else:
            name = display.shorten_middle(display.clean(deltas[0].step), _LABEL)
            yield Fact(name=name, text=difference_wording.difference_sentence(deltas[0], shown))


def _since_first_key(delta: Delta) -> tuple[str, Reason | None, str]:
    """Return what steps have in common that cannot be judged for one reason; any other step stands by itself."""
    if delta.verdict is Verdict.NOT_ENOUGH_DATA and delta.reason:
        return delta.metric, delta.reason.of_any_run, ""
    return delta.metric, None, delta.step


def _withheld(deltas: Sequence[Delta], shown: FigureFormat) -> str:
    """Return why several steps cannot be set against the first."""
    names = numbered_labels.list_labels([display.clean(delta.step) for delta in deltas])
    reason = deltas[0].reason
    why = display.clean_sentence(describe_reason(reason and reason.of_any_run))
    base = display.clean(deltas[0].base)
    return f"{names}: there is not enough data to say whether {shown.noun} changed since {base}. {why}"
