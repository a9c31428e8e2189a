"""`gpureport check`: the gate of a pipeline."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.internal_errors import InternalError, report_internal_error
from gpureport.cli.messages.line_account import summarise_run
from gpureport.cli.messages.verbosity import print_details
from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.gate_options import GateOptions, gate_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.options.written_paths import Export, WritingCommand
from gpureport.cli.results import gate as gates
from gpureport.cli.runs import gate_sources, named_runs, run_sampling
from gpureport.cli.runs.analyses import analyze_runs
from gpureport.errors import SettingsError, SourceError

if TYPE_CHECKING:
    from gpureport.checks.gate_verdict import Verdict
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.findings import Check
    from gpureport.importers.time_window import RunReading
    from gpureport.places import Place
    from gpureport.recording import Recording


@click.command(cls=WritingCommand)
@click.argument("source", nargs=-1, required=True, shell_complete=complete_files)
@gate_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "line"]),
    default="text",
    help="Text for people, JSON, or one line for a chat.",
)
@click.option("--export", "exports", type=Export(), multiple=True, help="Write figures as openmetrics=FILE.")
@analysis_options
@source_options
def check(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    gate: GateOptions,
    form: str,
    exports: tuple[tuple[str, "Place"], ...],
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Check runs against rules. The exit code is 0 if every rule holds.

    Example: gpureport check gpu.csv --fail-on 'idle_ratio <= 5%'

    It is 1 if a rule is broken, 4 if a rule cannot be assessed (a source is missing, too short, or lacks the metric),
    and 5 if gpureport itself failed on a run. Rules come from [[policy]] in gpureport.toml, from the file of --policy,
    and from --fail-on. A SOURCE is a log, a folder of logs, or a run of the store. Runs of one step are repetitions.
    """
    from gpureport.checks.gate_verdict import build_missing_check  # noqa: PLC0415 - loads numpy

    rules = gates.read_rules(gate, analysis.config)
    if not rules.policy.entries:
        hint = "write [[policy]] limit = 'problem', or --fail-on problem"
        raise SettingsError(rules.stated_at, "no rule is set", hint, code="no_rule")
    found, missing = _read(source, options)
    baseline = gates.read_baseline(rules.baseline if found and rules.policy.needs_baseline else None, options)
    named, baseline = _name_runs(found, baseline, options)
    analysed = analyze_runs(named, analysis, fewest_runs=0)
    missing += [build_missing_check(one.where, one.what, one.code) for _, one in analysed.faults]
    against = gates.compare_with_baseline(baseline, analysed, analysis, options)
    verdict = gates.judge_runs(rules, analysed, missing, against, options.tracker.throughput)
    gates.write_results(gate, rules, verdict.checks, "check", [f"gpureport check {verdict.line}"])
    _export(exports, analysed, verdict, options.tracker.throughput)
    _show(verdict, form)
    return verdict.exit_code


def _read(source: tuple[str, ...], options: SourceOptions) -> "tuple[list[Recording], list[Check]]":
    """Return the runs that could be read, and a check for each source that could not."""
    from gpureport.checks.gate_verdict import build_missing_check  # noqa: PLC0415 - loads numpy

    found: list[Recording] = []
    missing: list[Check] = []
    for group, own in gate_sources.group_sources(source, options):
        if len(group) == 1:
            named_runs.note_stored_namesake(group[0], own)
        for each in gate_sources.read_each_run(group, own, partial(_read_stored, own), _read_log):
            if isinstance(each, InternalError):
                report_internal_error(each)
                missing.append(build_missing_check(each.where, each.what, each.code))
            elif isinstance(each, SourceError):
                missing.append(build_missing_check(each.where, f"{each.what}; {each.hint}", each.code))
            else:
                found.append(each)
    if options.labels.name and len(found) > 1:
        raise SettingsError(
            "--name", f"one name for {len(found)} runs", "name one source at a time", code="wrong_count"
        )
    return found, missing


def _name_runs(
    found: "list[Recording]", baseline: gates.Baseline, options: SourceOptions
) -> "tuple[list[Recording], gates.Baseline]":
    """Return the runs and the baseline with the names that are shown."""
    if options.anonymise:
        # in one call, so that a machine has the same name on both sides
        hidden = named_runs.hide_names([*found, *baseline.recordings])
        found, baseline = hidden[: len(found)], replace(baseline, recordings=hidden[len(found) :])
    return found if options.labels.name else named_runs.make_run_names_distinct(found), baseline


def _read_stored(options: SourceOptions, name: str) -> "list[Recording]":
    # names are hidden in all runs at once
    return named_runs.read_recordings([name], replace(options, anonymise=False))


def _read_log(reading: "RunReading") -> "Recording":
    recording = reading.recording()
    print_details(summarise_run(recording.run))
    return recording


def _export(
    exports: Sequence[tuple[str, "Place"]], analysed: "AnalysedRuns", verdict: "Verdict", throughput: str | None
) -> None:
    if not exports:
        return
    from gpureport.nightly.site import figure_exports  # noqa: PLC0415 - loads numpy

    runs = run_sampling.sample_runs(analysed.runs, throughput) if analysed.runs else []
    for _, path in exports:
        gates.write_file(path, figure_exports.render_openmetrics(runs, verdict.checks))


def _show(verdict: "Verdict", form: str) -> None:
    from gpureport.checks.formats import check_json, check_summary  # noqa: PLC0415 - loads numpy

    if form == "json":
        click.echo(check_json.render(verdict), nl=False)
    elif form == "line":
        click.echo(f"gpureport check {verdict.line}")
    else:
        click.echo(check_summary.render_text(verdict.checks), nl=False)
