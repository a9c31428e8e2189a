"""The one place where a report's content is put together."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from gpureport.analysis import RULES
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.comparison.chain import Comparison, compare, pair_steps
from gpureport.comparison.factors import Factor, describe_factors
from gpureport.comparison.study import Study, build_study
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Check
from gpureport.recording import Recording
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.findings import FindingCard
from gpureport.report.model.report_content import Report
from gpureport.report.runs import gpu_time, over_time, report_run
from gpureport.report.runs.report_run import ReportRun, build_subtitle, name_chain
from gpureport.report.sections import data_quality, fold_lines, method
from gpureport.report.sections.findings import actions, assessed, cards
from gpureport.report.sections.findings.found import find_worst
from gpureport.report.sections.gpus import gpu_table, spending, timeline
from gpureport.report.sections.head import run_tiles, verdict
from gpureport.report.sections.head.loss_sentence import Findings
from gpureport.report.sections.pictures import signal_history, time_spent, use_over_time
from gpureport.report.sections.steps import gains, pairs, tables, tiles
from gpureport.report.sections.steps import study as groups
from gpureport.report.wording import display

_TITLE, _CHAIN = 120, 80
_LAST_STEP_FIRST = "Those of the last step first. "
_ORDER = "Problems first, then by GPU time lost."


def build(  # noqa: PLR0913 - what a report depends on, each by name
    runs: Sequence[tuple[Recording, Analysis]],
    *,
    title: str | None,
    command: str,
    gpu_hour_price: float | None,
    version: str,
    rules: Sequence[Rule] | None = None,
    kinds: Collection[str] | None = None,
    by: Sequence[Factor] = (),
    throughput: str | None = None,
    checks: Sequence[Check] = (),
    goals: TrainingGoals | None = None,
) -> Report:
    """Return the content of a report; `report.build` says what each argument means."""
    rules = RULES if rules is None else rules
    asked = {kind for rule in rules for kind in rule.kinds if kinds is None or kind in kinds}
    runs = report_run.shorten_names(spending.apply_gpu_hour_price(runs, gpu_hour_price))
    comparison = compare(report_run.sample_runs(runs, throughput), goals or NO_GOALS)
    inputs = report_run.order_by_step(runs, comparison)
    found = cards.build_cards(inputs)
    judgement = assessed.build_judgement(inputs, asked)
    final = [run for run in inputs if run.step == inputs[-1].step]
    findings = Findings(
        judged=judgement.checks - judgement.missing,
        missing=judgement.missing,
        samples=max(run.samples for run in final),
        seconds=max(run.seconds for run in final),
        is_mean=all(run.run.is_mean for run in final),
    )
    several = len(comparison.steps) > 1
    study = build_study(comparison, by) if by and several else None
    told = cards.build_rows(inputs, found, is_chain=study is None)
    bars = gpu_time.build_time_bars(inputs)
    repetitions = groups.suggest_repetitions(comparison)
    best = study.best_label if study else None
    result = verdict.build_verdict(comparison, inputs, findings, study, repetitions, checks=checks)
    is_hinted = bool(repetitions) and repetitions in result.details
    next_steps = actions.build_actions(inputs, told, comparison, best, is_hinted=is_hinted)
    worst = find_worst(inputs)
    shown = worst.findings if worst else ()
    history = signal_history.build_worst_history(inputs[0], shown) if len(inputs) == 1 else None
    histories = {place: over_time.trace_classes(run, rules) for place, run in enumerate(inputs)}
    named = display.shorten(name_chain(inputs), _CHAIN) or "GPU report"
    if several:
        figures = groups.build_study_tiles(comparison, study) if study else tiles.build_step_tiles(comparison)
    else:
        figures = run_tiles.build_tiles(comparison, findings, worst, history)
    report = Report(
        title=display.shorten(display.clean(title), _TITLE) if title else named,
        subtitle=build_subtitle(inputs, display.clean(describe_factors(study.by)) if study else ""),
        version=display.clean(version),
        verdict=result if findings.too_short and not several else verdict.add_next_step(result, next_steps),
        tiles=figures,
        steps=tables.build_step_table(comparison) if several else None,
        comparison=_build_comparison_part(comparison, inputs, found, study) if several else None,
        gpu_time=bars,
        gpu_time_table=gpu_time.build_time_table(bars) if bars else None,
        findings=found,
        order=_LAST_STEP_FIRST + _ORDER if several else _ORDER,
        timeline=timeline.build_timelines(inputs, found, histories),
        gpus=gpu_table.build_gpu_tables(inputs),
        stages=gpu_table.build_stage_tables(inputs),
        quality=data_quality.quality(inputs),
        judgement=judgement,
        method=method.method(inputs, rules, command, version),
        clocks=gpu_table.build_clock_tables(inputs),
        spending=spending.build_spending(inputs),
        answers=tuple(assessed.build_answers(inputs, found)),
        checklists=tuple(assessed.build_checklists(inputs)),
        policy=method.build_policy_table(checks),
        actions=next_steps,
        rows=told,
        spent=time_spent.build_time_spent(comparison, inputs, study),
        use=use_over_time.build_use_over_time(comparison, inputs, histories),
        worst=history,
    )
    return replace(report, folds=fold_lines.build_fold_lines(report))


def _build_comparison_part(
    comparison: Comparison, inputs: Sequence[ReportRun], cards: Sequence[FindingCard], study: Study | None
) -> ComparisonPart:
    """Return what a report says of its steps beside their table, or of its groups."""
    links, (charts, estimates) = pair_steps(comparison), tables.build_charts(comparison, study)
    return ComparisonPart(
        grouped=display.clean(describe_factors(study.by)) if study else "",
        charts=charts,
        legend=tables.describe_marks(charts),
        study=tuple(groups.build_study_sections(study, comparison)) if study else (),
        estimates=estimates,
        links=tuple(pairs.build_step_pairs(comparison, links)),
        remaining=tuple(gains.list_remaining(comparison, inputs, study, cards)),
        across=tuple(groups.list_across(comparison, study)),
        gains=None if study else gains.build_gain_table(comparison, links),
    )
