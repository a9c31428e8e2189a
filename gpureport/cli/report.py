"""`gpureport report`."""

from pathlib import Path

import click

from gpureport.cli import output, sources
from gpureport.cli.chain import StepOptions, recordings, step_options
from gpureport.cli.options import PriceOptions, SourceOptions, analysis_options, source_options


@click.command()
@click.argument("source", nargs=-1)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="FILE",
    help="File to write, its kind by its extension (repeatable; one analysis for all).",
)
@click.option("--title", help="Title instead of the runs' names.")
@click.option(
    "--templates", type=click.Path(path_type=Path), metavar="DIR", help="Templates that replace the shipped ones."
)
@step_options
@analysis_options
@source_options
def report(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    outputs: tuple[Path, ...],
    title: str | None,
    templates: Path | None,
    chain: StepOptions,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    prices: PriceOptions,
    config: Path | None,
    options: SourceOptions,
) -> None:
    """Write the report of one run, or of several as steps in the order given.

    A SOURCE is a log, a folder of logs, or a run of the store. Runs of one step are repetitions of it; a run without
    a step label is a step of its own.
    """
    output.check(outputs)
    found = recordings(source, chain, options)
    output.check(outputs, [each.locator for recording in found for each in recording.run.sources])
    analysed = sources.analysed(found, select, ignore, config, prices)
    content = output.report(analysed, title, grouped=chain.grouped, throughput=options.throughput)
    output.write(content, outputs, templates)
