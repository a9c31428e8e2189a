"""Builds the content of a report and the summary line of each fold."""

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gpureport import __version__
from gpureport.analysis import RULES
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.comparison.chain import Comparison, compare, pair_steps
from gpureport.comparison.factors import Factor, describe_factors
from gpureport.comparison.run import build_sampled_run
from gpureport.comparison.study import Study, build_study
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Check, CheckOutcome, Outcome
from gpureport.recording import Recording
from gpureport.redaction import redact_text
from gpureport.report.blocks import count_findings
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.head import Verdict, VerdictCode
from gpureport.report.model.report_content import ComparisonPart, FindingCard, Report
from gpureport.report.model.shapes import Fact, build_table
from gpureport.report.runs import gpu_time, over_time, report_run
from gpureport.report.runs.report_run import ReportRun, build_subtitle, name_chain
from gpureport.report.sections import reference, signal_history, time_spent
from gpureport.report.sections.findings import actions, cards
from gpureport.report.sections.findings.found import find_worst
from gpureport.report.sections.gpus import gpu_table, spending
from gpureport.report.sections.head import verdict
from gpureport.report.sections.head.loss_sentence import Findings
from gpureport.report.sections.steps import pairs, summary
from gpureport.report.sections.steps import study as groups
from gpureport.report.wording import display
from gpureport.report.wording.terms import OUTCOME_WORDS
from gpureport.report.wording.words import WORDS

_TITLE, _CHAIN = 120, 80
_ORDER = "Problems come first, then the largest losses."


def build(  # noqa: PLR0913 - the inputs of a report
    runs: Sequence[tuple[Recording, Analysis]],
    *,
    title: str | None,
    command: str,
    rules: Sequence[Rule] | None = None,
    kinds: Collection[str] | None = None,
    by: Sequence[Factor] = (),
    throughput: str | None = None,
    checks: Sequence[Check] = (),
    goals: TrainingGoals | None = None,
    is_trial: bool = False,
) -> Report:
    title, command = title and redact_text(title), redact_text(command)
    rules = RULES if rules is None else rules
    asked = {kind for rule in rules for kind in rule.kinds if kinds is None or kind in kinds}
    runs = list(report_run.shorten_names(runs))
    comparison = compare([build_sampled_run(*each, throughput) for each in runs], goals or NO_GOALS)
    inputs = tuple(report_run.order_by_step(runs, comparison))
    found = tuple(cards.build_cards(inputs))
    judgement = reference.build_judgement(inputs, asked)
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
    told = tuple(cards.build_rows(inputs, found, is_chain=study is None and not summary.is_blocked(comparison)))
    bars = gpu_time.build_time_bars(inputs if several or not findings.too_short else ())
    repetitions = groups.suggest_repetitions([recording.run for recording, _ in runs])
    best = study.best_label if study else None
    result = verdict.build_verdict(comparison, inputs, findings, study, repetitions, checks=checks)
    repeat = repetitions not in result.details and not summary.is_blocked(comparison)
    next_steps = actions.build_actions(inputs, told, comparison, best, repeat=repeat)
    worst = find_worst(inputs)
    history = signal_history.build_history(inputs[0], worst.findings if worst else ()) if len(inputs) == 1 else None
    histories = {place: over_time.ClassHistory(run, rules) for place, run in enumerate(inputs)}
    named = display.shorten(name_chain(inputs), _CHAIN) or "GPU report"
    of_steps = groups.build_study_tiles(comparison, study) if study else ()
    of_steps = of_steps or (summary.build_step_tiles(comparison) if several else ())
    figures = of_steps or verdict.build_tiles(comparison, findings, worst, history)
    target = groups.build_target_tile(comparison, study)
    if target is not None:
        figures = (figures[0], target, *figures[1:-1])
    report = Report(
        title=display.shorten(display.clean(title), _TITLE) if title else named,
        subtitle=build_subtitle(inputs, display.clean(describe_factors(study.by)) if study else ""),
        version=__version__,
        verdict=result if findings.too_short and not several else verdict.add_next_step(result, next_steps),
        tiles=figures,
        steps=summary.build_step_table(comparison, study, is_trial=is_trial) if several else None,
        comparison=_build_comparison_part(comparison, inputs, found, study) if several else None,
        gpu_time=bars,
        gpu_time_table=gpu_time.build_time_table(bars) if bars else None,
        findings=found,
        order=_ORDER,
        timeline=tuple(over_time.build_timelines(inputs, found, histories)),
        gpus=gpu_table.build_gpu_tables(inputs),
        stages=gpu_table.build_stage_tables(inputs),
        quality=tuple(reference.quality(inputs)),
        judgement=judgement,
        method=reference.method(inputs, rules, command),
        clocks=gpu_table.build_clock_tables(inputs),
        spending=spending.build_spending(inputs),
        answers=tuple(reference.build_answers(inputs, found)),
        checklists=tuple(reference.build_checklists(inputs)),
        policy=reference.build_policy_table(checks),
        actions=next_steps,
        rows=told,
        spent=time_spent.build_time_spent(comparison, inputs, study) if bars else None,
        use=time_spent.build_use_over_time(comparison, inputs, histories),
        worst=history,
        has_target=target is not None,
    )
    return replace(report, folds=build_fold_lines(report))


def _build_comparison_part(
    comparison: Comparison, inputs: Sequence[ReportRun], cards: Sequence[FindingCard], study: Study | None
) -> ComparisonPart:
    links, (charts, estimates) = pair_steps(comparison), summary.build_charts(comparison, study)
    title = "Changes between groups" if study else "Changes between steps"
    facts = [*groups.list_remaining(comparison, inputs, study, cards), *groups.list_across(comparison, study)]
    gains = [] if study else [pairs.list_gains(comparison, links)]
    blocks = [*gains, Block(anchor="links", title=title, facts=facts), *pairs.list_pairs(comparison, links)]
    return ComparisonPart(
        grouped=display.clean(describe_factors(study.by)) if study else "",
        charts=charts,
        legend=WORDS[f"chart.{charts[0].form}"] if charts else "",
        estimates=estimates,
        study=tuple(groups.list_study(study, comparison)) if study else (),
        reference=tuple(select_blocks(blocks, Form.FULL)),
    )


_LINE, _SLOWING = 60, {"thermal_throttle", "hw_throttle"}


def build_fold_lines(report: Report) -> tuple[Fact, ...]:
    runs = report.timeline
    lengths = display.format_range((run.seconds for run in runs), display.duration)
    has_one_gpu = {len(run.table.rows) for run in report.gpus} == {1}
    strips, undrawn = sum(len(run.strips) for run in runs), sum(run.undrawn_gpus for run in runs)
    drawn = f"{strips} of {strips + undrawn} GPUs" if undrawn else display.plural(strips, "GPU")
    drawn = f"{len(runs)} runs" if report.several else drawn
    unmade, partly = report.judgement, report.judgement.partly
    assessed = f"all {unmade.checks} assessed" if unmade.checks and not partly else ""
    if unmade.missing or partly:
        assessed = f"{unmade.missing or partly} of {unmade.checks} checks"
        assessed += (f", {partly} more in part" if partly else "") if unmade.missing else " in part"
    outliers = [line.partition(":")[0] for run in report.gpus for line in run.outliers]
    slowing = {(line.kind, line.outcome) for run in report.answers for line in run.lines if line.kind in _SLOWING}
    is_never = slowing == {(kind, Outcome.JUDGED.value) for kind in _SLOWING}
    apart = "never slowed by heat or hardware" if is_never else "clock, temperature, power, memory and utilisation"
    apart = display.shorten(outliers[0], _LINE) if outliers else apart
    apart += f"; {len(outliers) - 1} more" if len(outliers) > 1 else ""
    rules = report.policy.rows if report.policy else ()
    outcomes = Counter(row.cells[0].text for row in rules)
    words = {word: "met" if outcome is CheckOutcome.PASSED else word for outcome, word in OUTCOME_WORDS.items()}
    parts = ", ".join(f"{outcomes[word]} {shown}" for word, shown in words.items() if outcomes[word])
    lines = {
        "Findings": f"{count_findings(report.rows)}{f' in {len(runs)} runs' if report.several else ''}",
        "Timeline": f"every sample of {drawn}, with zoom" if strips else "a single moment: nothing to draw",
        "Every run" if report.several else "The GPU" if has_one_gpu else "Per GPU": (
            f"{len(runs)} runs, {lengths}" if report.several else apart
        ),
        "Not assessed": assessed,
        "Policy": f"{display.plural(len(rules), 'rule')}: {parts}" if rules else "",
        "Method": "how the figures were computed, and what the words mean",
    }
    return tuple(Fact(name=name, text=text) for name, text in lines.items() if text)


def add_decision(content: Report, trial: dict[str, Any], advice: tuple[str, list[str]] | None) -> Report:
    """Return a report that starts with a trial's decision, what was advised and tried, and the outcome."""
    line, notes = advice or ("", [])
    suggested, advised, rows = shlex.split(line), set[tuple[str, str]](), list[list[str]]()
    end = suggested.index("--") if line else 0
    values = dict(each.split("=", 1) for each in suggested[5:end:2])
    for ours, theirs in zip(trial["plan"]["command"], suggested[end + 1 :], strict=False):
        # the trial may have its own name for an option
        own, name = (each.rpartition("{")[2].removesuffix("}") for each in (ours, theirs))
        advised |= {(own if ours.endswith("}") else name, each) for each in values.get(name, "").split(",")[1:]}
    for changed, (label, *cells) in trial["rows"]:
        rows.append([label, "advised" if changed & advised else "not advised" if changed and advice else "", *cells])
        advised -= changed
    rows += [["=".join(pair), "advised", "0", "", "", "not tried"] for pair in sorted(advised)]
    columns = ("Setting", "Advice", "Runs", "Time per run" if trial["unit"] == "s" else "Speed", "Change", "Outcome")
    note = "Advice is based on the first run of the current setting; changes are relative to that setting."
    table = build_table(columns, rows, note, in_words=("Advice", "Outcome"))
    tried = Block(forms=Form.ALL | Form.PAPER, part="bars", title="Advised, tried, outcome", table=table)
    before = ("(hidden_secrets)", "(quality_unknown)")
    facts = [Fact(name="Advice", text=each) for each in notes if not each.endswith(before)]
    whole, part = content.verdict, content.comparison
    said = "The decision compares settings within each round. Whole steps are compared here: "
    said = said + display.lower_first(whole.sentence) if part else whole.sentence
    if whole.code is VerdictCode.STEPS_TOO_SHORT:
        said = "The decision stands; GPU figures need runs of 20 s or more."
    return replace(
        content,
        # doubts are about whole steps
        verdict=Verdict(sentence=trial["headline"], details=(said, *whole.details), notes=whole.notes),
        steps=content.steps or table,
        comparison=part and replace(part, study=(tried, Block(forms=Form.LONG | Form.PAPER, facts=facts), *part.study)),
        # a chosen setting needs no further measurements
        actions=tuple(each for each in content.actions if each.finding or each.is_trial or not trial["chosen"]),
    )
