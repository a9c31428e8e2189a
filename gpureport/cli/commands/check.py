"""`gpureport check`: the gate of a pipeline."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gpureport.cli import gate
from gpureport.cli.account import summarise_run
from gpureport.cli.command import command, sources
from gpureport.cli.messages import print_details, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.output import write_file
from gpureport.cli.reading import given, recordings, words
from gpureport.cli.reading.analyses import AnalysedRuns, analyze_runs, sample_runs
from gpureport.errors import InternalError, SettingsError, SourceError

if TYPE_CHECKING:
    from gpureport.checks.verdict import Verdict
    from gpureport.findings import Check
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording


@command("check", sources(required=True))
def check(source: tuple[str, ...], options: Options) -> int:
    """Check runs against rules. The exit code is 0 if every rule holds.

    Example: gpureport check gpu.csv --fail-on 'idle_ratio <= 5%'

    It is 1 if a rule is broken, 4 if a rule cannot be assessed (a source is missing, too short, or lacks the metric),
    and 5 if gpureport itself failed on a run. Rules come from [[policy]] in gpureport.toml, from the file of --policy,
    and from --fail-on. A SOURCE is a log, a folder of logs, or a run of the store. Runs of one step are repetitions.
    """
    from gpureport.checks.verdict import build_missing_check  # noqa: PLC0415 - loads numpy

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
    gate.write_results(options, rules, verdict.checks, "check", [f"gpureport check {verdict.line}"])
    _export(options, analysed, verdict)
    _show(verdict, options.gate_form)
    return verdict.exit_code


def _read(source: tuple[str, ...], options: Options) -> "tuple[list[Recording], list[Check]]":
    """Return the runs that could be read, and a check for each source that could not."""
    from gpureport.checks.verdict import build_missing_check  # noqa: PLC0415 - loads numpy

    def read_stored(name: str, own: Options) -> "list[Recording]":
        # names are hidden in all runs at once
        return recordings.read_recordings([name], replace(own, anonymise=False))

    def read_log(reading: "RunReading") -> "Recording":
        recording = reading.recording()
        print_details(summarise_run(recording.run))
        return recording

    found: list[Recording] = []
    missing: list[Check] = []
    noted = set[str]()
    for word, own, each in gate.read_each_run(source, options, read_stored, read_log):
        if word not in noted and not own.as_one_run:
            words.note_stored_namesake(word, own)
        noted.add(word)
        if isinstance(each, InternalError):
            report_internal_error(each)
            missing.append(build_missing_check(each.where, each.what, each.code))
        elif isinstance(each, SourceError):
            missing.append(build_missing_check(each.where, f"{each.what}; {each.hint}", each.code))
        else:
            found.append(each)
    given.check_single_name(options, len(found))
    return found, missing


def _export(options: Options, analysed: AnalysedRuns, verdict: "Verdict") -> None:
    """Write the files of `--export`."""
    if not options.exports:
        return
    from gpureport.nightly import openmetrics  # noqa: PLC0415 - loads numpy

    runs = sample_runs(analysed.runs, options.throughput) if analysed.runs else []
    for _, path in options.exports:
        write_file(path, openmetrics.render_openmetrics(runs, verdict.checks))


def _show(verdict: "Verdict", form: str) -> None:
    from gpureport.checks import verdict as verdicts  # noqa: PLC0415 - loads numpy

    if form == "json":
        click.echo(verdicts.render_json(verdict), nl=False)
    elif form == "line":
        click.echo(f"gpureport check {verdict.line}")
    else:
        click.echo(verdicts.render_text(verdict.checks), nl=False)
