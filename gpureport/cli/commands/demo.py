"""`gpureport demo`."""

from pathlib import Path

import click

from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.analysis_options import AnalysisOptions
from gpureport.cli.options.label_options import LabelOptions
from gpureport.cli.options.source_options import SourceOptions
from gpureport.cli.results import report_output
from gpureport.cli.runs import analyses, named_runs
from gpureport.resources import find_shipped_folder

_CHAIN = "input_starved"
_WORK = (1000.0, "steps")
"""What each of the three runs did, as the README beside them says."""


@click.command()
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Also write the report of the three steps (repeatable).",
)
@click.option(
    "--detail",
    type=click.Choice(["short", "full"]),
    default="short",
    help="One screen of text, or everything.",
)
def demo(*, outputs: tuple[Path, ...], detail: str) -> None:
    """Analyse the sample logs: a job that starves on its input pipeline, and what two changes did to it.

    The logs are generated, not recorded. The folder of the other samples is printed.
    """
    report_output.check_outputs(outputs)
    chain = find_shipped_folder("sample_logs") / _CHAIN
    found = named_runs.read_recordings([str(chain)], SourceOptions(labels=LabelOptions(work=(_WORK,))))
    content = report_output.build_report(analyses.analyze_runs(found, AnalysisOptions()))
    report_output.print_report(content, full=detail == "full")
    report_output.write_report(content, outputs)
    others = ", ".join(sorted(path.name for path in chain.parent.iterdir() if path.is_dir() and path != chain))
    print_note(f"More samples in {chain.parent}: {others}")
