"""`gpureport compare`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpureport.cli import output, sources
from gpureport.cli.options import SourceOptions, judging_options, source_options
from gpureport.cli.text import printable
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from gpureport.cli.sources import Analysed
    from gpureport.recording import Recording, Run

_CANNOT_JUDGE = 4
"""Exit code when everything was read, and nothing of it can be compared."""


class By(click.ParamType[tuple[str, str]]):
    """`step`, `param:KEY` or `tag:KEY`."""

    name = "step|param:KEY|tag:KEY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:  # noqa: ANN401 - click's signature
        """Take what is read and its key apart."""
        if isinstance(value, tuple):
            return value
        kind, _, key = str(value).partition(":")
        if (kind, bool(key)) not in {("step", False), ("param", True), ("tag", True)}:
            self.fail(f"{value!r} is none of step, param:KEY and tag:KEY", param, ctx)
        return kind, key


@click.command()
@click.argument("source", metavar="BASE NEXT...", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, or JSON.")
@click.option(
    "--by", type=By(), metavar=By.name, default="step", help="What makes runs a step (default: their step label)."
)
@judging_options
@source_options
def compare(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    form: str,
    by: tuple[str, str],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    config: Path | None,
    options: SourceOptions,
) -> int:
    """Set runs side by side, each step against the one before it.

    Each of BASE and NEXT is a log, a folder of logs, or a run of the store. Runs of one step are repetitions of it;
    a run without a step label is a step of its own. Differences are plain, not tested.
    """
    found = _labelled(sources.recordings(source, options), by)
    _several(found, by)
    analysed = sources.analysed(found, select, ignore, config)
    if form == "json":
        from gpureport.report import comparison_json  # noqa: PLC0415 - loads numpy

        click.echo(comparison_json.render([analysis for _, analysis in analysed.runs]), nl=False)
    else:
        output.comparison(analysed)
    return _code(analysed)


def _code(analysed: "Analysed") -> int:
    """Return the exit code, and say on standard error when nothing can be compared."""
    from gpureport.comparison.links import links  # noqa: PLC0415 - loads numpy
    from gpureport.comparison.steps import compare as steps  # noqa: PLC0415 - as above

    if any(link.comparable for link in links(steps([analysis for _, analysis in analysed.runs]))):
        return 0
    named = ", ".join(printable(recording.run.name) for recording, _ in analysed.runs)
    click.echo(
        f"gpureport: {named}: nothing can be compared; record at least a minute of the GPUs in each step", err=True
    )
    return _CANNOT_JUDGE


def _labelled(found: Sequence["Recording"], by: tuple[str, str]) -> list["Recording"]:
    """Return the runs with what `--by` names as their step."""
    kind, key = by
    if kind == "step":
        return list(found)
    return [replace(one, run=replace(one.run, step=f"{key}={_value(one.run, kind, key)}")) for one in found]


def _value(run: "Run", kind: str, key: str) -> str:
    given = dict(run.params if kind == "param" else run.tags)
    if key not in given:
        known = f"it has {', '.join(sorted(given))}" if given else f"give it with --{kind} {key}=VALUE when ingesting"
        raise SettingsError("--by", f"run {run.name} has no {kind} {key!r}", known)
    return given[key]


def _several(found: Sequence["Recording"], by: tuple[str, str]) -> None:
    """Refuse what makes no pair of steps.

    Raises:
        UsageError: when there are fewer than two runs, or all are of one step.
    """
    if len(found) < 2:  # noqa: PLR2004 - a comparison has two sides
        msg = f"comparing takes two runs or more, and this is {len(found)}; name another"
        raise click.UsageError(msg, click.get_current_context())
    steps = {one.run.step for one in found}
    if len(steps) == 1 and None not in steps:
        label = by[0] if by[0] == "step" else f"{by[0]} {by[1]!r}"
        msg = f"all {len(found)} runs are of one {label} ({found[0].run.step}), which leaves nothing to compare"
        raise click.UsageError(msg, click.get_current_context())
