"""Texts that try to be more than text, and runs that carry one wherever a log or a person can put text."""

import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import gpureport
from gpureport import testing
from gpureport.testing import AbsentCells, LogEvent, NotJudged, Rejected, Work
from tests.support.runs import run, with_run

TEXTS: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
TEXTS |= {"length": "x" * 10_000, "words": "word " * 2_000}
"""Each by what it aims at."""

PLAIN = "plain"
STEERING = {"Cc", "Cf", "Cs", "Co"}
"""Categories of characters that steer a terminal or the direction of text, or are none."""


def steps_with(text: str, *, ours: bool = True) -> list[gpureport.Analysis]:
    """Return two runs in which every name, param and message is a text; with `ours` reasons, advice and kinds too."""
    return [_analysis(text, place, gpus, ours=ours) for place, gpus in enumerate((2, 1))]


def _analysis(text: str, place: int, gpus: int, *, ours: bool) -> gpureport.Analysis:
    made = run(f"run {place}", gpus=gpus)
    said = text if ours else "words of our own"
    quality = replace(
        made.run.quality,
        rejected=(Rejected(reason=said, rows=2, first_line=811),),
        absent_cells=(AbsentCells(column=text, reason=said, cells=made.run.quality.rows_kept),),
        notes=(said,),
        log_events=(LogEvent(kind="driver_message", at=made.run.started, line=3, device="gpu:0", text=text),),
    )
    params = ((text, text), ("key", text))
    made = with_run(
        made,
        name=f"{text} {place}",
        step=f"{text} {place}",
        work=Work(amount=1000.0, unit=text),
        quality=quality,
        devices=tuple(replace(gpu, model=text, driver=text, node=text or None) for gpu in made.run.devices),
        sources=tuple(replace(source, kind=said, locator=text) for source in made.run.sources),
        params=params,
        tags=params,
    )
    # fingerprints are made of bytes
    kind = said.encode(errors="ignore").decode()
    gap = replace(testing.finding("idle_gap", (10, 40), lost=30.0), kind=kind, cause=kind, summary=said)
    gap = replace(gap, recommendation=said, ruled_out=(said,))
    heat = testing.finding("thermal_throttle", (100, 200), lost=20.0)
    missing = NotJudged(kind="cpu_bound", device=None, reason=said, recording=said)
    return replace(gpureport.analyze(made), findings=(gap, heat), not_judged=(missing,))


def visible(text: str) -> str:
    """Return the beginning of what a reader must see of a text: no steering, no marks, plain spaces."""
    bare = " ".join(re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)", "", text).split())
    kept = (sign for sign in bare if unicodedata.category(sign) not in STEERING | {"Cn", "Zl", "Zp"})
    return unicodedata.normalize("NFC", " ".join("".join(kept).split()))[:20].strip()
