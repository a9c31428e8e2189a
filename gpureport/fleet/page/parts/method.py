"""How the figures were counted, and with which command."""

from collections.abc import Iterator

from gpureport.fleet.fleet_report import FleetReport
from gpureport.fleet.page.page_model import PagePart
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display
from gpureport.report.wording.terms import DEFINITIONS

_TERMS = dict(DEFINITIONS)
_SAVING = (
    "The most GPU time that the step could give back. Each lost second counts once, with the step that is most "
    "promising for it."
)
_NEARLY_ALL = 0.995
_HEALTH = "A GPU is followed from run to run by its uuid; without one by its node and its number there."


def build_method_part(report: FleetReport, command: str, version: str) -> PagePart:
    """Return what a reader needs to check the figures."""
    return PagePart(
        id="method",
        title="Method",
        line="how the figures were counted",
        facts=tuple(_list_facts(report, command, version)),
    )


def _list_facts(report: FleetReport, command: str, version: str) -> Iterator[Fact]:
    yield Fact(name="Command", text=display.clean(command))
    yield Fact(name="Version", text=f"gpureport {version}")
    if report.selection:
        yield Fact(name="Runs", text=display.clean(report.selection))
    if report.prices.date:
        yield Fact(name="Prices", text=f"of {display.clean(report.prices.date)}")
    if report.energy_joules is not None:
        yield Fact(name="Energy", text=_describe_energy(report.energy_joules, report))
    yield Fact(name="Times", text="in UTC" if report.is_zoned else "local times of the recording machines")
    yield Fact(name="GPU-hour", text=_TERMS["GPU-hour"])
    yield Fact(name="GPU time lost", text=_TERMS["GPU time lost"])
    yield Fact(name="Would save", text=_SAVING)
    yield Fact(name="Health of a GPU", text=_HEALTH)


def _describe_energy(joules: float, report: FleetReport) -> str:
    """Return the energy of the GPUs, and over what part of the time if not all."""
    share = report.energy_gpu_seconds / report.use.gpu_seconds if report.use.gpu_seconds else 1.0
    part = "" if share > _NEARLY_ALL else f", recorded in {display.percent(share)} of the GPU time"
    return f"{display.energy(joules)}, of GPUs alone{part}"
