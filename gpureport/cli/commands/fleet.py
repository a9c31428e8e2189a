"""`gpureport fleet`."""

from gpureport.cli import fleet as runs
from gpureport.cli.command import command, sources
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import read_run_prices


@command("fleet", sources())
def fleet(source: tuple[str, ...], options: Options) -> int:
    """Say who wastes GPU time over many runs, what would save most, and which GPU is sick.

    Example: gpureport fleet --since 30d -o fleet.html

    Without a SOURCE it takes the runs of the store: all of them, or those that --tag, --where and --since select. Logs
    and folders of logs are read into the store first. Only what is new is analysed: by as many processes as there are
    cores, or on a Dask cluster. A run that cannot be analysed is named and left out.
    """
    from gpureport.fleet.engines import open_engine  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.fleet.fleet_json import anonymise_fleet_report  # noqa: PLC0415 - as above
    from gpureport.fleet.summarise import read_summary_settings  # noqa: PLC0415 - as above
    from gpureport.fleet.totals import LABELS, build_fleet_report  # noqa: PLC0415 - as above
    from gpureport.report.formats.branding import read_brand  # noqa: PLC0415 - as above
    from gpureport.report.formats.output import refuse_sources  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    runs.check_fleet_outputs(options)
    settings = read_settings(options.config)
    brand = read_brand(settings)
    refuse_sources(options.outputs, [*map(str, brand.files)])
    prices, rules = read_run_prices(settings, options), read_summary_settings(settings)
    engine = open_engine(options.engine, options.scheduler)
    found = runs.find_fleet_runs(source, options, engine)
    done = runs.summarise_fleet(found, rules, engine)
    asked = runs.describe_selection(source, options)
    report = build_fleet_report(done.summaries, prices, options.group_by or LABELS, asked, options.gpu_hours_per_month)
    if options.anonymise:
        report = anonymise_fleet_report(report)
    runs.write_fleet(report, options, brand)
    return runs.report_failed_runs(report, done.traces)
