"""The four key figures: loss, size, best saving, GPUs to take out."""

from gpureport.fleet.fleet_report import CardVerdict, FleetReport
from gpureport.fleet.page.amounts import Amounts, format_lost_share
from gpureport.fleet.page.class_words import shorten_name
from gpureport.report.model.head import Tile
from gpureport.report.wording import display

_NONE = "none found"


def build_tiles(report: FleetReport, amounts: Amounts) -> tuple[Tile, ...]:
    """Return the key figures, the one to quote first."""
    return (_lost(report, amounts), _used(report, amounts), _saving(report, amounts), _gpus(report))


def _lost(report: FleetReport, amounts: Amounts) -> Tile:
    use = report.use
    share = format_lost_share(use)
    return Tile(
        label="GPU time lost",
        value=share,
        context="" if share == display.NOT_RECORDED else amounts.format_both(use.lost_gpu_seconds, use.lost_cost),
    )


def _used(report: FleetReport, amounts: Amounts) -> Tile:
    use = report.use
    on = f" on {display.plural(report.gpus, 'GPU')}" if report.gpus is not None else ""
    where = f" in {display.plural(report.nodes, 'node')}" if report.nodes else ""
    cost = f"{amounts.format_money(use.cost)}. " if use.cost is not None else ""
    return Tile(
        label="GPU time in all",
        value=amounts.format_time(use.gpu_seconds),
        unit=amounts.unit,
        context=f"{cost}{display.plural(use.runs, 'run')}{on}{where}",
    )


def _saving(report: FleetReport, amounts: Amounts) -> Tile:
    if not report.savings:
        return Tile(label="Would save most", value=_NONE, context="No finding asks for a change.")
    best = report.savings[0]
    runs = display.plural(best.runs, "run")
    gain = f"Up to {amounts.format_both(best.gpu_seconds, best.cost)}" if best.gpu_seconds else "Gain not known"
    return Tile(label="Would save most", value=shorten_name(best.title), context=f"{gain}, in {runs}")


def _gpus(report: FleetReport) -> Tile:
    health = report.health
    pulled, watched = (
        sum(card.verdict is verdict for card in health.cards) for verdict in (CardVerdict.PULL, CardVerdict.WATCH)
    )
    counts = (
        f"{display.integer(watched)} to watch" if watched else "",
        f"{display.integer(health.healthy)} healthy" if health.healthy else "",
        f"{display.integer(health.not_assessed)} not assessed" if health.not_assessed else "",
    )
    assessed = len(health.cards) + health.healthy
    return Tile(
        label="GPUs to pull",
        value=display.integer(pulled) if assessed else "not assessed",
        unit=f"of {display.integer(report.gpus)}" if assessed and report.gpus is not None else "",
        context=", ".join(filter(None, counts)),
    )
