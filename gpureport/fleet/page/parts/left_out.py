"""What no figure counts, or one twice: failed runs, those without a GPU, overlaps, checks."""

from collections.abc import Iterator

from gpureport.fleet.fleet_report import FailedRun, FleetReport, RunName, UnassessedCheck
from gpureport.fleet.page.amounts import Amounts
from gpureport.fleet.page.class_words import shorten_name
from gpureport.fleet.page.page_model import PagePart
from gpureport.fleet.page.run_names import name_runs
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.wording import display, terms

_MOST_ROWS = 20
_ERROR = 240
"""Most characters of an error."""


def build_left_out_parts(report: FleetReport, amounts: Amounts) -> Iterator[PagePart]:
    """Yield each part that has something in it."""
    if report.failed:
        yield _build_failed(report.failed)
    if report.without_gpu:
        yield _build_without_gpu(report.without_gpu)
    if report.overlaps:
        yield _build_overlaps(report, amounts)
    if report.unassessed:
        yield _build_unassessed(report.unassessed, report, amounts)


def _build_failed(failed: tuple[FailedRun, ...]) -> PagePart:
    shown = failed[:_MOST_ROWS]
    return PagePart(
        id="failed",
        title="Failed runs",
        line=f"{display.plural(len(failed), 'run')} could not be read or analysed",
        table=Table(
            columns=("Run", "Why"),
            numeric=(False,),
            rows=tuple(
                Row(
                    head=_name_run(each.run),
                    cells=(Cell(text=display.shorten(display.clean_sentence(each.error), _ERROR)),),
                )
                for each in shown
            ),
        ),
        notes=_name_hidden(len(failed) - len(shown), "run"),
    )


def _name_run(run: RunName) -> Cell:
    name, id_ = shorten_name(run.name), shorten_name(run.id)
    return Cell(text=name or id_, small=id_ if name != id_ else "")


def _name_hidden(hidden: int, noun: str) -> tuple[str, ...]:
    return (f"{display.plural(hidden, f'more {noun}')}: the JSON names all.",) if hidden > 0 else ()


def _build_without_gpu(runs: tuple[RunName, ...]) -> PagePart:
    names = ", ".join(shorten_name(run.name or run.id) for run in runs[:_MOST_ROWS])
    return PagePart(
        id="without-gpu",
        title="Runs without a GPU",
        line=f"{display.plural(len(runs), 'run')}, in no figure above",
        facts=(Fact(name="Runs", text=names),),
        notes=_name_hidden(len(runs) - _MOST_ROWS, "run"),
    )


def _build_overlaps(report: FleetReport, amounts: Amounts) -> PagePart:
    shown = report.overlaps[:_MOST_ROWS]
    return PagePart(
        id="overlaps",
        title="Counted twice",
        line=f"{amounts.format_time_and_unit(report.overlapping_gpu_seconds)} in which two runs used the same GPU",
        table=Table(
            columns=("GPU", "Runs", "For"),
            numeric=(False, True),
            rows=tuple(
                Row(
                    head=Cell(text=shorten_name(each.card)),
                    cells=(
                        Cell(text=display.join_words(name_runs(each.runs))),
                        Cell(text=display.duration(each.seconds)),
                    ),
                )
                for each in shown
            ),
        ),
        notes=(
            "One run may be a copy of the other, or two jobs shared the GPU. The longest overlaps are listed.",
            "A GPU without a uuid is known by its node and its number there.",
        ),
    )


def _build_unassessed(checks: tuple[UnassessedCheck, ...], report: FleetReport, amounts: Amounts) -> PagePart:
    whole = report.use.gpu_seconds
    return PagePart(
        id="not-assessed",
        title="Not assessed",
        line=f"{display.plural(len(checks), 'check')} not assessed in some runs",
        table=Table(
            columns=("Check", "Of the time", amounts.unit, "Runs"),
            numeric=(True, True, True),
            rows=tuple(
                Row(
                    head=Cell(text=terms.kind_title(each.kind)),
                    cells=(
                        Cell(text=display.percent(each.gpu_seconds / whole) if whole else display.NOT_RECORDED),
                        Cell(text=amounts.format_time(each.gpu_seconds)),
                        Cell(text=display.integer(each.runs)),
                    ),
                )
                for each in checks
            ),
        ),
        notes=("The report of a run says what to record for each check.",),
    )
