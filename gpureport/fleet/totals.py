"""Builds the fleet report from the rows of runs: sums by class, run, label and week, and advice."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from math import fsum, inf
from typing import Any, TypeAlias

from gpureport import names
from gpureport.analysis.account.cost import Prices
from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import LOST_CLASSES, GpuPrice
from gpureport.comparison.gains import measure_excessive_short_pauses
from gpureport.fleet.cards import Facts, assess_health, find_overlaps, name_run
from gpureport.fleet.summarise import CLASS_COLUMNS, Row
from gpureport.recording import Device
from gpureport.report.sections.findings.found import find_advice

LABELS = ("user", "project", "job", "node")
_OWN_LABELS = ("node", "model", "step")
"""Labels that are columns of the row itself."""
_PRICED_BY = ("provider", "instance", "spot")
_MOST, _MOST_EXAMPLES = 20, 3
"""Maximum number of groups and runs to list, and of runs and steps to mention in advice."""
_MOST_WEEKS = 520
"""Above this number of weeks, empty ones are left out, so that a wrong clock cannot fill the page."""
_HOUR, _DAY = 3600, 86_400_000_000
_HELD = "held"
"""The part of `unused` in which a process held GPU memory, so that no other job could run."""
LOST = (*LOST_CLASSES, _HELD)
_CLASSES = ("computing", "short_pauses", *LOST, "no_samples", "no_job")
_SUMMED = [*_CLASSES, "job", "lost"]
Sums: TypeAlias = Mapping[str, Any]
"""Seconds by class, job seconds, lost seconds, costs (such as `job_cost`, None if unknown), and `runs`."""


def build_fleet_report(
    summaries: Sequence[Row],
    prices: Prices,
    labels: Sequence[str] = LABELS,
    selection: str = "",
    gpu_hours_per_month: float | None = None,
) -> Facts:
    rows = _price_rows(summaries, prices)
    members = names.group_pairs((row["run_id"], row) for row in rows)
    whole, runs = _sum(rows), {run: _sum(own) for run, own in members.items()}
    first = {run: own[0] for run, own in members.items()}
    lost = {run: sums["lost"] for run, sums in runs.items() if sums["lost"] > 0}
    ranked = _by_amount(lost)
    enough = fsum(lost.values()) / 2
    half = next((count for count, sum_ in enumerate(accumulate(lost[run] for run in ranked), 1) if sum_ >= enough), 0)
    largest = _find_largest_loss(_sum([row for run in ranked[:half] for row in members[run]]))
    excessive = (run for run, sums in runs.items() if measure_excessive_short_pauses({k: sums[k] for k in _CLASSES}))
    pauses = {run: runs[run]["short_pauses"] for run in excessive}
    dated = [row for row in rows if row["started"] is not None]
    powered = [row for row in rows if row["energy_joules"] is not None]
    unpriced = {row["model"] or "unknown model" for row in rows if row["price"] is None and row["job"] > 0}
    applied = {row["rate"] for row in rows}
    cards = {row["card"] for row in rows}
    overlaps, overlapping = find_overlaps(dated)
    return {
        "selection": selection,
        "started": min((row["started"] for row in dated), default=None),
        "ended": max((row["ended"] for row in dated), default=None),
        "is_zoned": bool(dated) and all(row["timezone"] is not None for row in dated),
        "use": _read_use(whole),
        "month": _project_month(_read_use(whole), gpu_hours_per_month),
        "gpus": (None if len(runs) > 1 else len(rows)) if None in cards else len(cards),
        "nodes": len({row["node"] for row in rows if row["node"]}),
        "energy_joules": fsum(row["energy_joules"] for row in powered) if powered else None,
        "energy_gpu_seconds": fsum(row["job"] for row in powered),
        "classes": list(_list_classes(whole)),
        "prices": {
            "currency": prices.currency if prices.rates else "",
            "date": prices.date if prices.rates else "",
            "unpriced_models": sorted(unpriced) if prices.rates else [],
            "unused_rates": [each.model for each in prices.rates if each.model and each.source not in applied],
        },
        "half_lost_in": half,
        "half_lost_class": largest and largest["name"],
        "worst_runs": [
            {
                "run": name_run(first[run]),
                "user": _read_label(first[run], "user"),
                **_describe_sums(runs[run]),
                "is_lower_bound": run in pauses,
            }
            for run in ranked[:_MOST]
        ],
        "pausing_runs": [name_run(first[run]) for run in _by_amount(pauses)[:_MOST]],
        "groupings": [_group_runs(rows, label) for label in labels],
        "savings": _merge_advice(rows),
        "health": assess_health(rows),
        "weeks": _divide_by_week(dated),
        "undated_gpu_seconds": fsum(row["job"] for row in rows if row["started"] is None),
        "failed": [{"run": name_run(row), "error": row["error"]} for row in summaries if row["error"]],
        "without_gpu": [name_run(row) for row in summaries if row["device"] is None and not row["error"]],
        "overlaps": overlaps,
        "overlapping_gpu_seconds": overlapping,
        "unassessed": _list_unassessed(rows),
    }


def _price_rows(summaries: Sequence[Row], prices: Prices) -> list[Row]:
    @cache
    def find_price(model: str | None, labels: tuple[tuple[str, str], ...]) -> GpuPrice:
        return prices.price_gpu(Device(id="", index=0, model=model), dict(labels))

    def find_times(row: Row) -> dict[str, float]:
        times = {name: row[column] or 0.0 for name, column in CLASS_COLUMNS.items()}
        times[_HELD] = min(row["held_seconds"] or 0.0, times["unused"])
        times["unused"] -= times[_HELD]
        job = fsum(amount for name, amount in times.items() if name != "no_job")
        return times | {"job": job, "lost": fsum(times[name] for name in LOST)}

    return [
        {
            **row,
            "times": (times := find_times(row)),
            "job": times["job"],
            "lost": times["lost"],
            "price": (price := find_price(row["model"], tuple(p for p in _pairs(row) if p[0] in _PRICED_BY))).amount,
            "rate": price.source,
            "card": _identify_card(row),
        }
        for row in summaries
        if row["device"] is not None and not row["error"]
    ]


def _identify_card(row: Row) -> tuple[str, str] | None:
    """Return a key that identifies a GPU across runs, or None. Device ids recur in other jobs."""
    node = row["node"] and (row["node"], row["device"].rpartition("/")[2])
    return ("uuid", row["uuid"]) if row["uuid"] else node or None


def _pairs(row: Row) -> list[tuple[str, str]]:
    return [*row["params"], *row["tags"]]


def _read_label(row: Row, label: str) -> str | None:
    return row[label] if label in _OWN_LABELS else names.find_label(_pairs(row), label)


def _sum(rows: Collection[Row]) -> Sums:
    sums: dict[str, Any] = {"runs": len({row["run_id"] for row in rows})}
    for name in _SUMMED:
        spent = [(row["price"], seconds) for row in rows if (seconds := row["times"][name]) > 0]
        is_priced = bool(spent) and all(price is not None for price, _ in spent)
        sums[name] = fsum(seconds for _, seconds in spent)
        sums[f"{name}_cost"] = fsum(price * seconds for price, seconds in spent) / _HOUR if is_priced else None
    return sums


def _read_use(sums: Sums) -> Facts:
    return {
        "runs": int(sums["runs"]),
        "gpu_seconds": sums["job"],
        "lost_gpu_seconds": sums["lost"],
        "unknown_gpu_seconds": sums["no_samples"],
        "no_job_gpu_seconds": sums["no_job"],
        "cost": sums["job_cost"],
        "lost_cost": sums["lost_cost"],
        "lost_ratio": sums["lost"] / seen if (seen := sums["job"] - sums["no_samples"]) > 0 else None,
    }


def _project_month(use: Facts, gpu_hours: float | None) -> Facts | None:
    if not gpu_hours or not use["gpu_seconds"]:
        return None
    factor = gpu_hours * _HOUR / use["gpu_seconds"]
    return {name: use[name] and factor * use[name] for name in ("gpu_seconds", "lost_gpu_seconds", "lost_cost")}


def _list_classes(sums: Sums) -> Iterator[Facts]:
    for name in _CLASSES:
        if sums[name] > 0:
            yield {"name": name, "gpu_seconds": sums[name], "cost": sums[f"{name}_cost"]}


def _find_largest_loss(sums: Sums) -> Facts | None:
    lost = [each for each in _list_classes(sums) if each["name"] in LOST]
    return max(lost, key=lambda each: each["gpu_seconds"], default=None)


def _describe_sums(sums: Sums) -> Facts:
    return {"use": _read_use(sums), "largest_loss": _find_largest_loss(sums)}


def _by_amount(amounts: Mapping[str, float]) -> list[str]:
    return sorted(amounts, key=lambda name: (-amounts[name], name))


def _group_runs(rows: Sequence[Row], label: str) -> Facts:
    members = names.group_pairs((_read_label(row, label), row) for row in rows)
    sums = {name: _sum(own) for name, own in members.items()}
    ranked = sorted(sums, key=lambda name: (-sums[name]["lost"], -sums[name]["job"], name or ""))
    listed = ranked[:_MOST] + [name for name in ranked[_MOST:] if name is None]
    rest = [name for name in ranked[_MOST:] if name is not None]
    joined = _describe_sums(_sum([row for name in rest for row in members[name]]))
    return {
        "label": label,
        "groups": [{"name": name, **_describe_sums(sums[name]), "groups": 1} for name in listed],
        "rest": {"name": None, **joined, "groups": len(rest)} if rest else None,
    }


def _divide_by_week(rows: Sequence[Row]) -> list[Facts]:
    """Return each week's sums, oldest first. Runs that span several weeks are split."""
    parts: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        start, stop = row["started"], row["ended"]
        for week in range(_count_weeks(start), _count_weeks(max(stop - 1, start)) + 1):
            inside = min(stop, _start_week(week + 1)) - max(start, _start_week(week))
            share = inside / (stop - start) if stop > start else 1.0
            times = {name: seconds * share for name, seconds in row["times"].items()}
            parts[week].append(row if share == 1 else {**row, "times": times})
    if not parts:
        return []
    begin, end = min(row["started"] for row in rows), max(row["ended"] for row in rows)
    weeks = range(min(parts), max(parts) + 1)
    return [
        {
            "monday": datetime.fromtimestamp(_start_week(week) // 1_000_000, UTC).date().isoformat(),
            **_describe_sums(_sum(parts.get(week, []))),
            "is_partial": _start_week(week) < begin or _start_week(week + 1) > end,
        }
        for week in (weeks if len(weeks) <= _MOST_WEEKS else sorted(parts))
    ]


def _count_weeks(time: int) -> int:
    """Return the week number of a time; week 0 starts on Monday 29 December 1969."""
    return (time + 3 * _DAY) // (7 * _DAY)


def _start_week(week: int) -> int:
    return (7 * week - 3) * _DAY


def _list_unassessed(rows: Sequence[Row]) -> list[Facts]:
    found = [
        {"kind": kind, "runs": len({row["run_id"] for row in own}), "gpu_seconds": fsum(row["job"] for row in own)}
        for kind, own in names.group_pairs((kind, row) for row in rows for kind in row["not_judged"]).items()
    ]
    return sorted(found, key=lambda each: (-each["gpu_seconds"], each["kind"]))


def _merge_advice(rows: Sequence[Row]) -> list[Facts]:
    """Return the advised steps, most promising first.

    A finding's time counts only for its first step, or for `record_more` if its cause is unknown.
    """
    losses: defaultdict[str, list[tuple[Row, Row, float]]] = defaultdict(list)
    for row in rows:
        roots = [each for each in row["findings"] if each["lost_gpu_seconds"] and not each["is_consequence"]]
        # findings may overlap; if they claim more than the GPU lost, all are scaled down equally
        scale = min(1.0, row["lost"] / (fsum(each["lost_gpu_seconds"] for each in roots) or inf))
        for finding in roots if scale else ():
            is_known = finding["cause"] not in {"not shown", "unknown"}
            fitting = [step for step in finding["steps"] if is_known or step == "record_more"]
            if fitting:
                losses[fitting[0]].append((row, finding, finding["lost_gpu_seconds"] * scale))
    lost = {step: fsum(seconds for _, _, seconds in own) for step, own in losses.items()}
    savings: list[Facts] = []
    for step in _by_amount(lost):
        savings.append(_merge_losses(step, losses[step], {each["title"] for each in savings}))
    return savings


def _merge_losses(step: str, losses: Sequence[tuple[Row, Row, float]], taken: set[str]) -> Facts:
    runs, kinds, advice = (defaultdict[Any, float](float) for _ in range(3))
    for row, finding, seconds in losses:
        runs[row["run_id"]] += seconds
        kinds[finding["kind"]] += seconds
        advice[finding["kind"], finding["cause"], tuple(finding["steps"])] += seconds
    names = {row["run_id"]: name_run(row) for row, _, _ in losses}
    others = Counter(each for _, finding, _ in losses for each in finding["steps"][1:])
    costs = [row["price"] and row["price"] * seconds / _HOUR for row, _, seconds in losses]
    title, *_ = find_advice(*max(advice, key=lambda each: advice[each])) or ("",)
    if not title or "{" in title or title in taken:
        title = STEPS[step].title if step in STEPS else step.replace("_", " ")
    return {
        "step": step,
        "title": title,
        "kinds": _by_amount(kinds),
        "runs": len(runs),
        "gpu_seconds": fsum(seconds for _, _, seconds in losses),
        "cost": None if None in costs else fsum(filter(None, costs)),
        "examples": [names[run] for run in _by_amount(runs)[:_MOST_EXAMPLES]],
        "other_steps": _by_amount(others)[:_MOST_EXAMPLES],
    }
