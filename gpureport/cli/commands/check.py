"""`gpureport check`: the gate of a pipeline."""

from dataclasses import replace

import click

from gpureport.checks import verdict as verdicts
from gpureport.checks.verdict import build_missing_check
from gpureport.cli import gate
from gpureport.cli.options import Options
from gpureport.cli.output import write_file
from gpureport.cli.reading import given, recordings
from gpureport.cli.reading.analyses import analyze_runs, sample_runs
from gpureport.errors import SettingsError
from gpureport.findings import Check
from gpureport.nightly.figures import render_openmetrics
from gpureport.recording import Recording


def check(source: tuple[str, ...], options: Options) -> int:
    """Check runs against rules; return the exit code of the verdict."""
    rules = gate.read_rules(options)
    if not rules.policy.entries:
        hint = "write [[policy]] limit = 'problem', or --fail-on problem"
        raise SettingsError(rules.stated_at, "no rule is set", hint, code="no_rule")
    found, missing = _read(source, options)
    baseline = gate.read_baseline(rules.baseline if found and rules.policy.needs_baseline else None, options)
    if options.anonymise:
        # in one call, so that a machine has the same name on both sides
        hidden = recordings.hide_names([*found, *baseline.recordings])
        found, baseline = hidden[: len(found)], replace(baseline, recordings=hidden[len(found) :])
    named = found if options.name else recordings.make_run_names_distinct(found)
    analysed = analyze_runs(named, options, fewest_runs=0)
    missing += [build_missing_check(one.where, one.what, one.code) for _, one in analysed.faults]
    against = gate.compare_with_baseline(baseline, analysed, options)
    verdict = gate.judge_runs(rules, analysed, missing, against, options)
    line = f"gpureport check {verdict.line}"
    gate.write_results(options, rules, verdict.checks, "check", [line])
    runs = sample_runs(analysed.runs, options.throughput) if options.exports and analysed.runs else []
    for path in options.exports:
        write_file(path, render_openmetrics(runs, verdict.checks))
    if options.gate_form == "line":
        click.echo(line)
    else:
        is_json = options.gate_form == "json"
        click.echo(verdicts.render_json(verdict) if is_json else verdicts.render_text(verdict.checks), nl=False)
    return verdict.exit_code


def _read(source: tuple[str, ...], options: Options) -> tuple[list[Recording], list[Check]]:
    def read_stored(name: str, own: Options) -> list[Recording]:
        # names are hidden in all runs at once
        return recordings.read_recordings([name], replace(own, anonymise=False))

    found: list[Recording] = []
    missing: list[Check] = []
    for _, _, each in gate.read_each_run(source, options, read_stored, recordings.read_log):
        if isinstance(each, Recording):
            found.append(each)
        else:
            missing.append(build_missing_check(*gate.explain_missing(each)))
    given.check_single_name(options, len(found))
    return found, missing
