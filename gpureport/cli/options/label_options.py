"""What a person says about runs that their logs do not hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.option_groups import refuse_repetition
from gpureport.cli.options.option_values import Amount, Pair
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from gpureport.importers import Labels

LABEL_OPTIONS = (
    click.option("--param", type=Pair(), multiple=True, help="Parameter of the run (repeatable)."),
    click.option("--tag", type=Pair(), multiple=True, help="Label of the run (repeatable)."),
    click.option(
        "--work",
        type=Amount(),
        multiple=True,
        callback=refuse_repetition,
        help="Work that each run did in all, such as 12000:steps.",
    ),
    click.option("--name", multiple=True, callback=refuse_repetition, help="Name of the run."),
    click.option(
        "--step",
        metavar="LABEL",
        multiple=True,
        help="Optimization step of the run (repeatable: one for each source, in order).",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """What a person says about the runs; `step` holds one label for all sources, or one for each."""

    param: tuple[tuple[str, str], ...] = ()
    tag: tuple[tuple[str, str], ...] = ()
    work: tuple[float, str] | None = None
    name: str | None = None
    step: tuple[str, ...] = ()

    def labels(self) -> "Labels":
        """Return them as importers take them.

        Raises:
            SettingsError: when a key is given twice, or one run gets several step labels.
        """
        for option, pairs in (("--param", self.param), ("--tag", self.tag)):
            if len(dict(pairs)) < len(pairs):
                raise SettingsError(option, "a key is given twice", "give each key once")
        if len(self.step) > 1:
            raise SettingsError("--step", f"{len(self.step)} labels for one run", "give one")
        from gpureport.importers import Labels  # noqa: PLC0415 - importers load pyarrow
        from gpureport.recording import Work  # noqa: PLC0415 - loads pyarrow

        work = Work(amount=self.work[0], unit=self.work[1]) if self.work else None
        return Labels(name=self.name, step=next(iter(self.step), None), params=self.param, tags=self.tag, work=work)
