"""What a person says about runs that their logs do not hold."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.option_groups import NO_OPTION, refuse_repetition
from gpureport.cli.options.option_values import Amount, GpuModel, Pair
from gpureport.cli.options.place_type import FETCHED_FILE
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from gpureport.importers.labels import LabelTable
    from gpureport.importers.protocol.importer import Labels

LABEL_OPTIONS = (
    click.option("--param", type=Pair(), multiple=True, help="Parameter of the run (repeatable)."),
    click.option("--tag", type=Pair(), multiple=True, help="Label of the run (repeatable)."),
    click.option(
        "--work",
        type=Amount(),
        multiple=True,
        help="Work that each run did while recorded, such as 12000:steps (repeatable: one for each source, in order).",
    ),
    click.option("--name", multiple=True, callback=refuse_repetition, help="Name of the run."),
    click.option(
        "--step",
        metavar="LABEL",
        multiple=True,
        help="Optimization step of the run (repeatable: one for each source, in order).",
    ),
    click.option(
        "--labels",
        "label_table",
        type=FETCHED_FILE,
        metavar="FILE",
        help="Table of jobs, such as sacct -P prints: user, account, job and node become labels of the runs.",
    ),
    click.option(
        "--gpu-model",
        type=GpuModel(),
        metavar="NAME",
        help="Model of GPUs that the log does not name, such as 'A100 80GB'.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """What a person says about the runs; `step` and `work` hold one value, or one per source.

    `label_table` is the file that tells whose they are, if any. `is_common` says that these are the options
    of one of several sources, and that `work` was given once for all of them.
    """

    param: tuple[tuple[str, str], ...] = ()
    tag: tuple[tuple[str, str], ...] = ()
    work: tuple[tuple[float, str], ...] = ()
    name: str | None = None
    step: tuple[str, ...] = ()
    label_table: Path | None = None
    gpu_model: str | None = None
    is_common: bool = field(default=False, metadata=NO_OPTION)

    def labels(self, table: "LabelTable | None" = None) -> "Labels":
        """Return them for importers, with the table that is read once per command.

        Raises:
            SettingsError: when a key is given twice, or one run gets several step labels or amounts of work.
        """
        for option, pairs in (("--param", self.param), ("--tag", self.tag)):
            if len(dict(pairs)) < len(pairs):
                raise SettingsError(option, "a key is given twice", "give each key once", code="repeated_key")
        for option, values, noun in (("--step", self.step, "labels"), ("--work", self.work, "amounts")):
            if len(values) > 1:
                raise SettingsError(option, f"{len(values)} {noun} for one run", "give one", code="wrong_count")
        from gpureport.importers.protocol.importer import Labels  # noqa: PLC0415 - importers load pyarrow
        from gpureport.recording import Work  # noqa: PLC0415 - loads pyarrow

        work = next((Work(amount=amount, unit=unit) for amount, unit in self.work), None)
        labels = Labels(
            name=self.name,
            step=next(iter(self.step), None),
            params=self.param,
            tags=self.tag,
            work=work,
            gpu_model=self.gpu_model,
            table=table,
        )
        return labels.of_several() if self.is_common else labels
