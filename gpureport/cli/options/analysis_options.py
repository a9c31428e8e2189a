"""What to look for in a run, at which prices, and what its training metrics are to reach."""

from dataclasses import dataclass
from pathlib import Path

import click

from gpureport.cli.options.option_groups import FILE, Command, add_options, take_values
from gpureport.cli.options.option_values import Direction, GpuHourPrice, MoneyPrice, Price, Target
from gpureport.comparison.training import QualityTarget

config_option = click.option(
    "--config", type=FILE, metavar="FILE", help="Settings (default: gpureport.toml in this folder)."
)
"""The option that names the settings."""
price_option = click.option(
    "--gpu-hour-price",
    type=MoneyPrice(),
    metavar="PRICE",
    help="Price of a GPU-hour, such as '2.49 EUR' (default: [prices] of the settings).",
)
"""The option that prices GPU time."""
_OPTIONS = (
    click.option(
        "--select",
        multiple=True,
        metavar="CHECK",
        help="Make only this check, such as idle_gap (repeatable).",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="CHECK",
        help="Leave out this check (repeatable).",
    ),
    price_option,
    click.option(
        "--carbon-intensity",
        type=Price(),
        metavar="G/KWH",
        help="Grams of CO2 equivalent per kWh (default: [carbon] of the settings).",
    ),
    click.option(
        "--better",
        type=Direction(),
        multiple=True,
        metavar="NAME=higher|lower",
        help="Which way a training metric gets better, where its name does not say (repeatable).",
    ),
    click.option(
        "--target",
        type=Target(),
        metavar="NAME=VALUE",
        help="Value a training metric is to reach, such as val_accuracy=0.78: the time until then is compared.",
    ),
    config_option,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """What to look for, prices, goals of training metrics, and the settings file, if not of this folder."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    gpu_hour_price: GpuHourPrice | None = None
    carbon_intensity: float | None = None
    better: tuple[tuple[str, bool], ...] = ()
    target: QualityTarget | None = None
    config: Path | None = None


def analysis_options(command: Command) -> Command:
    """Add the options of the analysis; the command gets them as one `analysis`."""
    return add_options(command, _OPTIONS, "analysis", lambda values: take_values(AnalysisOptions, values))
