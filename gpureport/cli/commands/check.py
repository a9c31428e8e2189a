"""`gpureport check`: the gate of a pipeline."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.internal_errors import InternalError, report_internal_error
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_baseline_sources, complete_sources
from gpureport.cli.options.option_values import Export
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.results import limit_checks
from gpureport.cli.runs import named_runs, run_sampling, source_names
from gpureport.cli.runs.analyses import analyze_runs
from gpureport.errors import SettingsError, SourceError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.checks.baseline_changes import BaselineComparison
    from gpureport.checks.policy import Policy
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.comparison.steps.sampled_run import SampledRun
    from gpureport.findings import Check
    from gpureport.recording import Recording

_FILE = click.Path(path_type=Path)
_REPEATED = 20
"""Runs of the store, the newest, that noise is measured from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outputs:
    """Files to write besides the answer."""

    junit: Path | None
    summary: Path | None
    exports: tuple[tuple[str, Path], ...]


@click.command()
@click.argument("source", nargs=-1, required=True, shell_complete=complete_sources)
@click.option(
    "--baseline",
    metavar="NAME|SOURCE",
    help="Baseline to compare with.",
    shell_complete=complete_baseline_sources,
)
@click.option(
    "--policy", type=_FILE, metavar="FILE", help="File with the limits (default: [[policy]] of the settings)."
)
@limit_checks.fail_on
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@click.option("--notify", is_flag=True, help="Print the result on one line, for a chat.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write the checks as JUnit XML.")
@click.option("--summary", type=_FILE, metavar="FILE", help="Write the checks as Markdown, for a job summary.")
@click.option("--export", "exports", type=Export(), multiple=True, help="Write figures for another program.")
@analysis_options
@source_options
def check(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    baseline: str | None,
    policy: Path | None,
    fail_on: tuple[str, ...],
    form: str,
    notify: bool,
    junit: Path | None,
    summary: Path | None,
    exports: tuple[tuple[str, Path], ...],
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Check runs against limits. The exit code is 0 if every limit holds.

    It is 1 if a limit is broken, 4 if a limit cannot be judged (a source is missing, too short, or lacks the metric),
    and 5 if gpureport itself failed on a run. Limits come from [[policy]] in gpureport.toml, from the file of --policy,
    and from --fail-on. A SOURCE is a log, a folder of logs, or a run of the store. Runs of one step are repetitions.
    """
    wanted = limit_checks.read_policy(policy or analysis.config, fail_on)
    if not wanted.entries:
        where = str(policy or analysis.config or "gpureport.toml")
        raise SettingsError(where, "no limit is set", "write [[policy]] limit = 'problem', or --fail-on problem")
    found, unread = _read(source, options)
    analysed = analyze_runs(found, analysis, fewest_runs=0)
    unread += [_cannot_judge("the run can be analysed", one.where, one.what) for _, one in analysed.faults]
    against, why = _against(wanted, baseline, analysed, analysis, options)
    checks = (
        *unread,
        *limit_checks.check_limits(wanted, analysed, against, why, throughput=options.tracker.throughput),
    )
    _write(checks, analysed, options.tracker.throughput, _Outputs(junit=junit, summary=summary, exports=exports))
    return _show(checks, form, notify=notify)


def _read(source: tuple[str, ...], options: SourceOptions) -> "tuple[list[Recording], list[Check]]":
    """Return the runs that could be read, and a check for each source that could not."""
    limit = "the source can be read"
    found, unread = [], []
    together = [(list(source), options)] if options.input.as_one_run else []
    for names, own in together or [([name], own) for name, own in options.for_each(source)]:
        try:
            found += named_runs.read_recordings(names, own)
        except (SourceError, StoreError) as error:
            unread.append(_cannot_judge(limit, ", ".join(names), f"{error.what}; {error.hint}"))
        except InternalError as error:
            report_internal_error(error)
            unread.append(_cannot_judge(limit, error.where, error.what))
    if options.labels.name and len(found) > 1:
        raise SettingsError("--name", f"one name for {len(found)} runs", "name one source at a time")
    return found, unread


def _cannot_judge(limit: str, run: str, reason: str) -> "Check":
    from gpureport.findings import Check, CheckOutcome  # noqa: PLC0415 - only where something runs

    return Check(limit=limit, run=run, outcome=CheckOutcome.CANNOT_JUDGE, reason=reason)


def _against(
    wanted: "Policy",
    baseline: str | None,
    analysed: "AnalysedRuns",
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> "tuple[dict[str, BaselineComparison], str]":
    """Return each step set against the baseline, and why there is nothing to set it against."""
    if baseline is not None and not wanted.needs_baseline:
        print_note(f"--baseline {baseline} is not read: no limit is on a change, or on what is new")
    if not wanted.needs_baseline or baseline is None or not analysed.runs:
        return {}, ""
    try:
        return _compared(baseline, analysed, analysis, options), ""
    except InternalError as error:
        report_internal_error(error)
        return {}, f"{error.where}: {error.what}"
    except (SourceError, StoreError) as error:
        return {}, f"{error.where}: {error.what}; {error.hint}"


def _compared(
    baseline: str, analysed: "AnalysedRuns", analysis: AnalysisOptions, options: SourceOptions
) -> "dict[str, BaselineComparison]":
    """Return each step set against the baseline, by what repetitions in the store differ by."""
    from gpureport.checks.baseline_changes import compare_with_baseline  # noqa: PLC0415 - as above
    from gpureport.checks.policy_evaluation import step_name  # noqa: PLC0415 - as above
    from gpureport.cli.runs.repetitions import measure_noise  # noqa: PLC0415 - loads numpy
    from gpureport.comparison.verdicts.calibration import repetition_key  # noqa: PLC0415 - as above

    key = options.tracker.throughput
    before = run_sampling.sample_runs(analyze_runs(_baseline(baseline, options), analysis).runs, key)
    latest_runs = run_sampling.sample_runs(analysed.runs, key)
    steps = {repetition_key(run.analysis.run) for run in (*latest_runs, *before)}
    repeated = measure_noise(options, analysis, steps, _REPEATED)
    groups: dict[str, list[SampledRun]] = {}
    for run in latest_runs:
        groups.setdefault(step_name(run.analysis), []).append(run)
    return {label: compare_with_baseline(before, runs, repeated, analysed.goals) for label, runs in groups.items()}


def _baseline(name: str, options: SourceOptions) -> "list[Recording]":
    """Return the runs of a baseline: a named one, else any source."""
    from gpureport.nightly.history.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    # labels of the checked runs are not those of the baseline
    unlabelled = options.with_labels(name=None, step=(), work=())
    if source_names.is_source(name, options):
        unlabelled_source = replace(unlabelled, input=replace(options.input, host=(), training=()))
        return named_runs.read_recordings([name], unlabelled_source)
    try:
        return read_baseline(source_names.find_store(options), name)
    except (StoreError, SettingsError) as error:
        if not source_names.is_stored(name, options):
            raise StoreError(error.where, error.what, error.hint) from error
        return named_runs.read_recordings([name], unlabelled)


def _write(checks: "Sequence[Check]", analysed: "AnalysedRuns", throughput: str | None, outputs: _Outputs) -> None:
    """Write the files that the options name."""
    from gpureport.checks import check_junit, check_summary  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.site import figure_exports  # noqa: PLC0415 - loads numpy

    for path, render in ((outputs.junit, check_junit.render), (outputs.summary, check_summary.render_markdown)):
        if path is not None:
            _put(path, render(checks))
    if outputs.exports:
        runs = run_sampling.sample_runs(analysed.runs, throughput) if analysed.runs else []
        figures = figure_exports.export_figures(runs)
        for form, path in outputs.exports:
            _put(path, figure_exports.FORMATS[form](figures, checks))


def _put(path: Path, content: str) -> None:
    """Write a file; what GitHub shows as the summary of a job is added to, since other steps write it too."""
    from gpureport.report.formats.output import write_whole  # noqa: PLC0415 - loads the report

    if str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        with path.open("a", encoding="utf-8") as job:
            job.write(content)
    else:
        write_whole(path, content.encode())
    print_note(f"wrote {path}")


def _show(checks: "Sequence[Check]", form: str, *, notify: bool) -> int:
    """Print the checks, and return the exit code."""
    from gpureport.checks import check_json, check_results, check_summary  # noqa: PLC0415 - loads numpy

    if form == "json":
        click.echo(check_json.render(checks), nl=False)
    else:
        click.echo(
            f"{check_results.format_result_line(checks)}\n" if notify else check_summary.render_text(checks), nl=False
        )
    return check_results.exit_code(checks)
