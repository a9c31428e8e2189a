"""`gpureport fleet`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.analysis_options import config_option, price_option
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.option_values import GpuHourPrice, LabelNames
from gpureport.cli.options.selection_options import selection_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.options.written_paths import OUTPUT, WritingCommand
from gpureport.cli.results import report_output

if TYPE_CHECKING:
    from gpureport.places import Place
    from gpureport.store.run_selection import RunSelection


@click.command(cls=WritingCommand)
@click.argument("source", nargs=-1, shell_complete=complete_files)
@click.option("--by", "labels", type=LabelNames(), help="Group by these labels (default: user,project,job,node).")
@click.option(
    "--gpu-hours-per-month",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HOURS",
    help="GPU-hours of a month, to say what it loses.",
)
@click.option(
    "--engine", type=click.Choice(["local", "dask"]), default="local", help="Where runs are analysed (default: local)."
)
@click.option("--scheduler", metavar="URL", help="Address of the Dask scheduler, such as tcp://head:8786.")
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    multiple=True,
    metavar="FILE",
    help="File to write; its extension names the format (repeatable).",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@report_output.text_detail_option
@report_output.open_option
@price_option
@config_option
@selection_options
@source_options
def fleet(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    labels: tuple[str, ...] | None,
    gpu_hours_per_month: float | None,
    engine: str,
    scheduler: str | None,
    outputs: "tuple[Place, ...]",
    form: str,
    detail: str,
    opened: bool,
    gpu_hour_price: GpuHourPrice | None,
    config: Path | None,
    selection: "RunSelection",
    options: SourceOptions,
) -> int:
    """Say who wastes GPU time over many runs, what would save most, and which GPU is sick.

    Example: gpureport fleet --since 30d -o fleet.html

    Without a SOURCE it takes the runs of the store: all of them, or those that --tag, --where and --since select. Logs
    and folders of logs are read into the store first. Only what is new is analysed: by as many processes as there are
    cores, or on a Dask cluster. A run that cannot be analysed is named and left out.
    """
    from gpureport.cli.results import fleet_output, fleet_runs  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.cli.runs.analyses import read_run_prices  # noqa: PLC0415 - as above
    from gpureport.fleet.engines import open_engine  # noqa: PLC0415 - as above
    from gpureport.fleet.fleet_json import anonymise_fleet_report  # noqa: PLC0415 - as above
    from gpureport.fleet.summarise import read_summary_settings  # noqa: PLC0415 - as above
    from gpureport.fleet.totals import LABELS, build_fleet_report  # noqa: PLC0415 - as above
    from gpureport.report.formats.branding import read_brand  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    full = detail == "full"
    fleet_output.check_fleet_options(outputs, full=full, opened=opened)
    settings = read_settings(config)
    brand = read_brand(settings)
    report_output.check_outputs(outputs, [*map(str, brand.files)])
    prices, rules = read_run_prices(settings, gpu_hour_price), read_summary_settings(settings)
    executor = open_engine(engine, scheduler)
    found = fleet_runs.find_fleet_runs(source, options, selection, executor)
    done = fleet_runs.summarise_fleet(found, rules, executor)
    asked = fleet_runs.describe_selection(source, options, selection)
    report = build_fleet_report(done.summaries, prices, labels or LABELS, asked, gpu_hours_per_month)
    if options.anonymise:
        report = anonymise_fleet_report(report)
    fleet_output.write_fleet(report, outputs, form, brand=brand, full=full, opened=opened)
    return fleet_output.report_failed_runs(report, done.traces)
