"""`gpureport demo`."""

from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.analysis_options import AnalysisOptions
from gpureport.cli.options.label_options import LabelOptions
from gpureport.cli.options.source_options import SourceOptions
from gpureport.cli.options.written_paths import OUTPUT, WritingCommand
from gpureport.cli.results import report_output
from gpureport.cli.runs import analyses, step_grouping
from gpureport.comparison.factors import parse_factors
from gpureport.places import find_shipped_folder

if TYPE_CHECKING:
    from gpureport.places import Place

_CHAIN = "recorded/training_steps"
_TITLE = "Sample logs, recorded"
_WORK = (32768.0, "images")
"""What each of the 15 runs did, as the README beside them says."""


@click.command(cls=WritingCommand)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    multiple=True,
    metavar="FILE",
    help="Also write the report of the five steps (repeatable).",
)
@report_output.open_option
@report_output.text_detail_option
def demo(*, outputs: "tuple[Place, ...]", opened: bool, detail: str) -> None:
    """Compare the five steps of a sample: a training job that waits for data, and what four changes did to it.

    Example: gpureport demo -o report.html --open

    The logs were recorded on one NVIDIA H100, three runs a step. The folder of the other samples is printed.
    """
    report_output.check_outputs(outputs)
    if opened:
        report_output.check_openable(outputs)
    chain = find_shipped_folder("sample_logs") / _CHAIN
    steps = tuple(str(path) for path in sorted(chain.iterdir()) if path.is_dir())
    by_folder = step_grouping.StepOptions(by=parse_factors("folder"), steps=None)
    found = step_grouping.read_steps(steps, by_folder, SourceOptions(labels=LabelOptions(work=(_WORK,))))
    content = report_output.build_report(analyses.analyze_runs(found, AnalysisOptions()), _TITLE)
    report_output.print_report(content, full=detail == "full")
    report_output.write_report(content, outputs, opened=opened)
    print_note("Try it on your log: gpureport analyze gpu.csv")
    print_note(f"More samples, most of them generated: {chain.parents[1]}")
