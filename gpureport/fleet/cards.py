"""Assesses each GPU across all its runs, and finds runs that overlap on the same GPU."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise
from math import fsum
from typing import Any, TypeAlias

from gpureport.fleet.summarise import Row
from gpureport.names import group_pairs

Facts: TypeAlias = dict[str, Any]
"""Part of the fleet report, structured like its JSON; None means unknown."""
PULL, WATCH = "pull", "watch"
_MOST_OVERLAPS = 20  # maximum number listed
_SEVERAL, _MOST_OF_THEM = 2, 0.5
"""Minimum runs to rule out chance, and minimum share of runs that makes a symptom lasting."""
SYMPTOMS = {
    "gpu_lost": "stopped responding",
    "ecc_uncorrected": "uncorrectable memory errors",
    "remapped_rows": "memory rows remapped",
    "hardware_slowed": "slowed by hardware",
    "heat_slowed": "slowed by heat",
    "slow_gpu": "slower than identical GPUs",
    "slow_link": "slow PCIe link",
    "ecc_corrected": "corrected memory errors",
}
"""Each symptom in words, most serious first. Its column is above 0 if the symptom was found, None if not assessed."""
_CHECKS: Mapping[Any, Any] = {"found": 1.0, "clear": 0.0, "not assessed": None}
_EXPLAINED = {"board", "cap", "locked"}
"""Causes of slowness that are not faults: settings, and differences of a few per cent between boards."""
_LASTING = {"hardware_slowed", "heat_slowed", "slow_gpu", "slow_link"}
"""Symptoms for which a card is pulled if at least half of its runs show them."""


def name_run(row: Row) -> Facts:
    return {"id": row["run_id"], "name": row["run_name"], "source": row["source"]}


def assess_health(rows: Sequence[Row]) -> Facts:
    gpus = Counter(row["run_id"] for row in rows)
    for row in rows:
        row["slow_gpu"] = _find_slowness(row) if gpus[row["run_id"]] > 1 else None
    ordered = sorted(rows, key=lambda row: (row["started"] or 0, row["run_id"]))
    cards = group_pairs((row["card"], row) for row in ordered)
    unidentified = cards.pop(None, [])
    assessed = [_assess_card(own) for own in cards.values()]
    verdicts = [card["verdict"] for card in assessed]
    # one run may suffice to pull a GPU that cannot be followed
    single = [card for row in unidentified if (card := _assess_card([row]))["verdict"] == PULL]
    return {
        "cards": sorted([*single, *(card for card in assessed if card["symptoms"])], key=_rank_card),
        "healthy": verdicts.count("healthy"),
        "not_assessed": verdicts.count("not assessed"),
        "identified_gpus": len(assessed),
        "unidentified_gpu_seconds": fsum(row["job"] for row in unidentified),
    }


def _find_slowness(row: Row) -> float | None:
    """Return 1 if a GPU was slower than identical ones for no known reason, 0 if not, None if not judged."""
    slow = [each for each in row["findings"] if each["kind"] == "slow_gpu" and not each["is_consequence"]]
    # slowdowns due to heat or hardware are separate symptoms, and lower this finding to `info`
    is_own = any(each["cause"] not in _EXPLAINED and each["severity"] != "info" for each in slow)
    return None if "slow_gpu" in row["not_judged"] else float(is_own)


def _rank_card(card: Facts) -> tuple[bool, int, int, str, str, str]:
    worst = card["symptoms"][0]
    place = (card["uuid"] or "", card["node"] or "", card["device"])
    return card["verdict"] == WATCH, [*SYMPTOMS].index(worst["symptom"]), -len(worst["runs"]), *place


def _assess_card(rows: Sequence[Row]) -> Facts:
    last, found = rows[-1], [_count_symptom(rows, symptom) for symptom in SYMPTOMS]
    shown = [each for each in found if each["runs"]]
    temperatures = [value for row in rows if (value := row["max_temperature_celsius"]) is not None]
    # a GPU as fast as others may still be unhealthy
    is_assessed = any(each["assessed"] for each in found if each["symptom"] != "slow_gpu")
    return {
        "uuid": last["uuid"],
        "model": last["model"],
        "node": last["node"],
        "device": last["device"].rpartition("/")[2],
        "runs": len({row["run_id"] for row in rows}),
        "gpu_seconds": fsum(row["job"] for row in rows),
        "max_temperature_celsius": max(temperatures, default=None),
        "symptoms": shown,
        "verdict": _judge_symptoms(shown) if shown else "healthy" if is_assessed else "not assessed",
    }


def _count_symptom(rows: Iterable[Row], symptom: str) -> Facts:
    """Return the runs that show a symptom. Memory rows remapped in the first run do not count."""
    column = f"{symptom}_seconds" if symptom.endswith("_slowed") else symptom
    known = [(row, amount) for row in rows if (amount := _CHECKS.get(row[column], row[column])) is not None]
    assessed, is_check = len(known), symptom in {"gpu_lost", "slow_gpu", "slow_link"}
    if symptom == "remapped_rows":
        known = [(row, max(more - fewer, 0)) for (_, fewer), (row, more) in pairwise(known)]
    return {
        "symptom": symptom,
        "runs": [name_run(row) for row, amount in known if amount > 0],
        "assessed": assessed,
        "amount": None if is_check else fsum(amount for _, amount in known),
    }


def _judge_symptoms(shown: Iterable[Facts]) -> str:
    """Return `pull` for a serious error, a GPU lost twice or a lasting symptom, otherwise `watch`."""
    for each in shown:
        count, symptom = len(each["runs"]), each["symptom"]
        stays = symptom == "gpu_lost" or (symptom in _LASTING and count >= _MOST_OF_THEM * each["assessed"])
        if symptom == "ecc_uncorrected" or (count >= _SEVERAL and stays):
            return PULL
    return WATCH


def find_overlaps(rows: Sequence[Row]) -> tuple[list[Facts], float]:
    """Return the longest overlaps, and the GPU-seconds that overlapping runs count more than once."""
    ordered = sorted(rows, key=lambda row: (row["started"], row["ended"], row["run_id"]))
    cards = group_pairs(((row["card"], row["timezone"] is None), row) for row in ordered if row["card"])
    pairs = (pair for own in cards.values() for pair in _list_overlaps(own))
    longest = nsmallest(
        _MOST_OVERLAPS, pairs, key=lambda pair: (-pair["seconds"], pair["card"], *(run["id"] for run in pair["runs"]))
    )
    return longest, fsum(_measure_excess(own) for own in cards.values())


def _list_overlaps(rows: Sequence[Row]) -> Iterator[Facts]:
    under_way: list[Row] = []
    for row in rows:
        under_way = [other for other in under_way if other["ended"] > row["started"]]
        for other in under_way:
            if other["run_id"] != row["run_id"]:
                yield {
                    "card": other["uuid"] or " ".join(other["card"]),
                    "runs": [name_run(other), name_run(row)],
                    "seconds": (min(row["ended"], other["ended"]) - row["started"]) / 1e6,
                }
        under_way.append(row)


def _measure_excess(rows: Sequence[Row]) -> float:
    excess, busy_until = 0, rows[0]["started"]
    for row in {row["run_id"]: row for row in rows}.values():
        excess += max(min(row["ended"], busy_until) - row["started"], 0)
        busy_until = max(busy_until, row["ended"])
    return excess / 1e6
