"""What of an analysis must not change unnoticed, a fact a line."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

Json = dict[str, Any]


def write_digest(document: Json) -> str:
    return "".join(f"{line}\n" for run in document["runs"] for line in _list_facts(run))


def write_comparison_digest(document: Json) -> str:
    """Return the figures of each step, and every difference with its verdict."""
    lines = []
    for step in document["steps"]:
        known = (f"{name} {_number(value)}" for name, value in step["measures"].items() if value is not None)
        lines.append(f"step {step['label']}: {', '.join(known)}")
    for delta in document["deltas"]:
        about = " ".join(str(delta[key]) for key in ("base", "step", "metric", "device", "window"))
        interval = " to ".join(map(_number, delta["interval"] or ()))
        lines.append(f"{about}: {delta['verdict']}, {_number(delta['difference'])} ({interval}), {delta['basis']}")
    return "".join(f"{line}\n" for line in lines)


def _list_facts(run: Json) -> Iterator[str]:
    about, quality = run["run"], run["quality"]
    yield f"run {about['name']}: {about['started']} to {about['ended']}, every {_number(about['interval_seconds'])} s"
    for device in about["devices"]:
        yield f"  device {device['id']}: {device['model']}, memory {device['memory_total_bytes']}"
    counted = ("lines", "rows_kept", "headers", "noise", "duplicates", "imputed_points")
    rejected = "".join(f", {each['rows']} {each['reason']}" for each in quality["rejected"])
    yield f"  read {', '.join(f'{quality[name]} {name}' for name in counted)}{rejected}"
    found = (_list_finding(finding, about["started"]) for finding in run["findings"])
    yield from (f"  {line}" for line in sorted(found))
    unassessed = sorted(" of ".join(filter(None, (each["kind"], each["device"]))) for each in run["not_judged"])
    yield f"  not assessed {', '.join(unassessed)}"
    for device, classes in run["gpu_time"].items():
        known = (f"{name} {_number(seconds)}" for name, seconds in classes.items() if seconds)
        yield f"  gpu time {device}: {', '.join(known)}"
    for device, figures in run["statistics"].items():
        texts = {name: text for name, value in figures.items() if (text := _figures(value))}
        yield from (f"  {device} {name}: {text}" for name, text in texts.items() if " " in text)
        yield f"  {device} {', '.join(f'{name} {text}' for name, text in texts.items() if ' ' not in text)}"


def _list_finding(finding: Json, started: str) -> str:
    begin = datetime.fromisoformat(started)
    spans = [
        [round((datetime.fromisoformat(end) - begin).total_seconds()) for end in span]
        for span in sorted(finding["intervals"])
    ]
    when = f" from {spans[0][0]} to {spans[-1][1]} s in {len(spans)}" if spans else ""
    lost = "" if finding["lost_gpu_seconds"] is None else f", lost {_number(finding['lost_gpu_seconds'])}"
    named = " ".join(str(finding[key]) for key in ("kind", "cause", "severity", "confidence"))
    return f"finding {named} {','.join(finding['devices'])}{when}{lost}"


def _figures(value: object) -> str:
    if isinstance(value, dict):
        if value.get("min") == value.get("max"):
            return _number(value["mean"])
        names = ("mean", "p5", "p50", "p95", "max")
        return " ".join(f"{name} {_number(value[name])}" for name in names if value.get(name) is not None)
    return _number(value) if isinstance(value, float | int) and not isinstance(value, bool) else ""


def _number(value: float | None) -> str:
    return "None" if value is None else f"{value:.6g}"
