"""The commands that analyse runs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import click

from gpureport.checks import verdict as verdicts
from gpureport.cli import gate, output, recordings, sources, words
from gpureport.cli.messages import Exit, UsageError, print_error, print_lines, print_note
from gpureport.cli.options import Options
from gpureport.cli.recordings import AnalysedRuns, analyze_runs, read_recordings, sample_runs
from gpureport.cli.steps import list_factors, read_steps, select_trial
from gpureport.comparison.work import measure_throughput
from gpureport.errors import SettingsError, SourceError
from gpureport.recording import Recording
from gpureport.report import write
from gpureport.settings import read_settings

_CHAIN, _WORK = "recorded/training_steps", (32768.0, "images")


def _analyze_all(found: Sequence[Recording], options: Options, fewest_runs: int = 1) -> AnalysedRuns:
    if (key := options.throughput) and not any(measure_throughput(each.training, key) for each in found):
        hint = "name a training metric that was logged with times, or give --work N:UNIT"
        raise SettingsError("--throughput", f"no run logged {key} with times", hint, code="no_such_throughput")
    return analyze_runs(found, options, fewest_runs)


def analyze(source: tuple[str, ...], options: Options) -> int:
    source = words.select_sources(source, options)
    if not source:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'SOURCE...'", param_type="argument")
    source, options = select_trial(source, options)
    policy = gate.read_policy_without_baseline(options)
    # a rule must not pass just because logs could not be read
    analysed = _analyze_all(recordings.read_recordings(source, options, tolerant=not options.fail_on), options)
    checks = gate.check_limits(policy, analysed, options)
    if options.form == "json":
        from gpureport.comparison.steps import build_steps
        from gpureport.report.formats import analysis_json

        # including statements about several runs
        measured = sample_runs(analysed.runs, options.throughput) if len(analysed.runs) > 1 else []
        click.echo(analysis_json.render([each for _, each in analysed.runs], tuple(build_steps(measured))), nl=False)
    else:
        output.print_report(output.build_report(analysed, options, checks=checks), options)
    return gate.report_failed_limits(checks)


def report(source: tuple[str, ...], options: Options) -> int:
    from gpureport.report.formats.branding import read_brand

    brand = read_brand(read_settings(options.config))
    output.check_outputs(options, [*map(str, brand.files)])
    policy = gate.read_policy_without_baseline(options)
    source, options = select_trial(source, options)
    found = read_steps(source, options, tolerant=not options.fail_on)
    output.check_outputs(options, [each.locator for recording in found for each in recording.run.sources])
    analysed = _analyze_all(found, options)
    checks = gate.check_limits(policy, analysed, options)
    output.write_report(output.build_report(analysed, options, by=list_factors(options), checks=checks), options, brand)
    return gate.report_failed_limits(checks)


def compare(source: tuple[str, ...], options: Options) -> int:
    from gpureport.comparison.chain import compare as compare_steps
    from gpureport.comparison.chain import pair_steps
    from gpureport.report.formats import comparison_json

    source, options = select_trial(source, options)
    found = read_steps(source, options, tolerant=True)
    steps = {one.run.step for one in found}
    if options.trial and not options.by and len(steps) == 1:
        print_error(f"only {steps.pop()} was measured, so nothing can be compared")
        return Exit.UNASSESSED
    if len(found) <= 1:
        raise UsageError(f"a comparison needs two or more runs: name another ({len(found)} found)", code="too_few_runs")
    if len(steps) == 1 and None not in steps:
        label = " and ".join(f"{by.kind} {by.key!r}" if by.key else by.kind for by in options.by or ()) or "step"
        raise UsageError(f"all {len(found)} runs have the same {label} ({steps.pop()})", code="one_step")
    analysed = _analyze_all(found, options, fewest_runs=2)
    by = list_factors(options)
    comparison = compare_steps(sample_runs(analysed.runs, options.throughput), goals=analysed.goals)
    if options.form == "json":
        click.echo(comparison_json.render(comparison, by), nl=False)
    else:
        output.print_report(output.build_report(analysed, options, by=by), options)
    if options.trial.get("chosen") or any(link.comparable for link in pair_steps(comparison)):
        return 0
    named = ", ".join(recording.run.name for recording, _ in analysed.runs)
    print_error(f"{named}: nothing can be compared; record the GPUs for at least 20 s in each step")
    return Exit.UNASSESSED


def check(source: tuple[str, ...], options: Options) -> int:
    policy, baseline_name = gate.read_rules(options)
    if not policy.entries:
        where = options.policy or options.config
        hint = "write limit = 'problem' under [[policy]], or use --fail-on problem"
        raise SettingsError(str(where or "gpureport.toml"), "no rule is set", hint, code="no_rule")
    read = [each for *_, each in gate.read_each_run(source, options, words.read_stored, recordings.read_log)]
    found = [each for each in read if isinstance(each, Recording)]
    unread = [gate.explain_missing(each) for each in read if not isinstance(each, Recording)]
    missing = [verdicts.build_missing_check(*each) for each in unread]
    sources.check_single_name(options, len(found))
    baseline = gate.read_baseline(baseline_name if found and policy.needs_baseline else None, options)
    if options.anonymise:
        # anonymised together, so that a host has the same pseudonym in runs and baseline
        hidden = recordings.name_runs([*found, *baseline.recordings], options)
        found, baseline = hidden[: len(found)], replace(baseline, recordings=hidden[len(found) :])
    analysed = analyze_runs(recordings.name_runs(found, replace(options, anonymise=False)), options, fewest_runs=0)
    missing += [verdicts.build_missing_check(one.where, one.what, one.code) for _, one in analysed.faults]
    against = gate.compare_with_baseline(baseline, analysed, options)
    verdict = verdicts.Verdict(checks=(*missing, *gate.check_limits(policy, analysed, options, against, baseline_name)))
    line = f"gpureport check {verdict.line}"
    gate.write_results(options, policy, verdict.checks, "check", [line])
    if options.exports:
        from gpureport.nightly.figures import render_openmetrics

        runs = sample_runs(analysed.runs, options.throughput)
        for path in options.exports:
            output.write_file(path, render_openmetrics(runs, verdict.checks))
    printed = {"text": verdicts.render_text(verdict.checks), "json": verdicts.render_json(verdict), "line": f"{line}\n"}
    click.echo(printed[options.gate_form], nl=False)
    return verdict.exit_code


def demo(options: Options) -> None:
    from gpureport.comparison.factors import parse_factors
    from gpureport.places import find_shipped_folder

    output.check_outputs(options)
    chain = find_shipped_folder("sample_logs") / _CHAIN
    steps = tuple(str(path) for path in sorted(chain.iterdir()) if path.is_dir())
    own = replace(options, by=parse_factors("folder"), work=(_WORK,))
    content = output.build_report(analyze_runs(read_steps(steps, own), own), own, title="Sample logs, recorded")
    output.print_report(content, options)
    output.write_report(content, options)
    print_note("Try it on your own log: gpureport analyze gpu.csv")
    print_note(f"More samples, most of them generated, are in {chain.parents[1]}")


def try_(command: tuple[str, ...], options: Options) -> int:
    from gpureport.nightly.baselines import keep_decision
    from gpureport.trial import decision, plan, result, session
    from gpureport.trial.suggest import suggest

    def analyse(path: str) -> AnalysedRuns:
        return analyze_runs(read_recordings([path], options), options)

    if options.basis:
        line, notes = suggest([each for _, each in analyse(options.basis).runs])
        print_lines(filter(None, [line]))
        for text in notes:
            (print_note if line else print_error)(text)
        return 0 if line else Exit.UNASSESSED
    # refuse what is wrong before the first run
    sources.build_labels(options)
    goals, folder = analyze_runs([], options).goals, options.folder or Path("trial")
    store = words.find_store(options).folder
    keep_decision(store, {}, "", named=bool(options.store))
    sample = cache(lambda path: sample_runs(analyse(path).runs, options.throughput)[0])
    more = {name: getattr(options, name) for name in ("design", "repeat", "host_only")}
    wanted = plan.make_plan(options.sets, command, options.budget, interval=options.record_interval, **more)
    base, key = wanted.settings[0], options.throughput
    measure = partial(decision.measure_runs, base=base, goals=goals, key=key, sample=sample)
    found = session.run_trial(folder, wanted, command, measure, print_note)
    try:
        source, own = select_trial((str(folder),), options)
        write(output.build_report(analyze_runs(read_steps(source, own), own), own), folder / result.REPORT_FILE)
    except SourceError as error:
        print_error(str(error))
    click.echo(result.render_text(found, folder, output.measure_page()), nl=False)
    keep_decision(store, found, folder.resolve().name, named=bool(options.store))
    return int(found["exit_code"])
