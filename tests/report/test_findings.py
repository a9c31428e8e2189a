"""Findings on a page: one row over all runs, what follows from what, what was not assessed, and what to do next."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport import testing
from gpureport.testing import Confidence, Evidence, Finding, NotJudged, Severity, analyze, build_page, finding, steps
from tests.support import runs
from tests.support.runs import divided, page_of, plain, run, step, strings, with_findings

WAITING = testing.recording(
    util=steps((97, 100), (30, 200), (0, 20), (30, 200), (97, 100), (0, 20), (97, 100)),
    cpu=steps((20, 100), (95, 420), (20, 220)),
)
"""A run that waits for the CPU, with a gap inside the wait and one outside."""


def test_every_check_has_an_answer_that_leads_to_its_findings() -> None:
    every = {*analyze(WAITING).kinds}
    for name in ("thermal_throttle", "cpu_bound", "healthy", "dmon"):
        page = runs.sample_page(name)
        (asked,) = page["answers"]
        outcomes = [line["outcome"] for line in asked["lines"]]
        assert {line["kind"] for line in asked["lines"]} == every, name
        assert page["judgement"]["checks"] == len(every), name
        assert outcomes.count("cannot judge") == page["judgement"]["missing"], name
        pointed = {card: line["kind"] for line in asked["lines"] for card in line["cards"]}
        assert pointed == {card["id"]: card["kind"] for card in page["findings"]}, name
        assert all(line["reason"] for line in asked["lines"] if line["outcome"] == "cannot judge"), name
        assert sum(map(int, re.findall(r"(\d+) ", asked["summary"]))) == len(every), name


def test_a_consequence_stands_beneath_its_root_in_every_format() -> None:
    analysis = analyze(WAITING)
    root, gap, *others = page_of(analysis)["findings"]
    assert (root["kind"], root["explains"]) == ("cpu_bound", [gap["id"]])
    assert (gap["kind"], gap["root"]) == ("idle_gap", root["id"])
    assert root["steps"]
    assert gap["steps"] == []
    assert [card["root"] for card in others if card["kind"] == "idle_gap"] == [""]
    assert f"Follows from {root['id']}." in build_page(analysis, "txt", full=True)
    assert f'Follows from <a href="#{root["id"]}">' in build_page(analysis, "html")


def test_what_to_record_stands_once_and_causes_are_named() -> None:
    page = runs.sample_page("dmon")["judgement"]
    assert page["missing"] > 0
    assert page["command"]
    assert page["command"] not in page["other_commands"]
    assert len(set(page["other_commands"])) == len(page["other_commands"])
    assert page_of(divided(computing=600))["judgement"]["command"] == ""
    analysis = analyze(WAITING)
    (time,) = analysis.gpu_time
    parts = tuple(replace(part, cause="checkpoint") if part.cause == "unknown" else part for part in time.parts)
    told = replace(analysis, gpu_time=(replace(time, parts=parts),))
    for form in ("txt", "html"):
        words = plain(re.sub(r"</?[a-z][^>]*>", " ", build_page(told, form, full=True)))
        assert re.search(r"checkpoint \d", words), form


def heat(start: float, end: float, gpu: str = "gpu:0") -> Finding:
    made = finding("thermal_throttle", (start, end), devices=(gpu,), lost=(end - start) * 0.2)
    return replace(made, severity=Severity.PROBLEM)


def gap(kind: str = "idle_gap", start: float = 100, end: float = 160, **fields: Any) -> Finding:
    lost = None if fields.pop("is_unknown", False) else end - start
    return replace(finding(kind, (start, end), lost=lost), **fields)


def advised(*findings: Finding) -> list[tuple[str, str, str]]:
    """Return what a run with findings is advised: the kind that it rests on, how much it saves, and its command."""
    page = page_of(with_findings(divided(1, computing=540, idle=60), *findings))
    kinds = {row["id"]: row["kind"] for row in page["rows"]} | {"": ""}
    return [
        (kinds[action["finding"]], "".join(re.findall(r"[\d.]+%", plain(action["gain"]))), action["command"])
        for action in page["actions"]
    ]


INFO: dict[str, Any] = {"severity": Severity.INFO}
GRAVE: dict[str, Any] = {"severity": Severity.PROBLEM}
ADVISED: dict[str, tuple[tuple[Finding, ...], list[str]]] = {
    "the gravest, then the largest certain saving": (
        (gap("tail_idle", 500, 560), gap("cpu_bound", 200, 280, confidence=Confidence.LOW), gap("mem_leak", **GRAVE)),
        ["mem_leak", "tail_idle", "cpu_bound"],
    ),
    "facts that ask for nothing": ((gap("startup_idle", 0, 20, **INFO), gap("power_cap", **INFO)), [""]),
    "the cause of what follows from it": (
        (heat(100, 200), gap(root=heat(100, 200).fingerprint)),
        ["thermal_throttle"],
    ),
    "a record where no cause is known": ((gap("low_util_cause_unknown", 100, 400),), ["low_util_cause_unknown"]),
    "the largest loss though its gain is not known": (
        (gap("startup_idle", 0, 60), gap("low_util_cause_unknown", 100, 400)),
        ["low_util_cause_unknown", "startup_idle"],
    ),
    "no larger batch while GPUs wait": ((gap("cpu_bound", 0, 500), gap("mem_headroom", **INFO)), ["cpu_bound"]),
    "a larger batch where they hardly wait": (
        (gap("cpu_bound", 0, 100), gap("mem_headroom", **INFO)),
        ["cpu_bound", "mem_headroom"],
    ),
}


@pytest.mark.parametrize("name", ADVISED)
def test_what_is_advised_first(name: str) -> None:
    findings, kinds = ADVISED[name]
    assert [kind for kind, _, _ in advised(*findings) if kind] == [kind for kind in kinds if kind]


def test_short_pauses_that_nothing_explains_are_tried_against() -> None:
    def trials(level: float, count: int = 600, **params: str) -> list[str]:
        made = testing.with_params(testing.recording(util=level + 2 * (np.arange(count) % 3 - 1)), **params)
        return [action["title"] for action in page_of(made)["actions"] if action["is_trial"]]

    (workers,) = trials(68, num_workers="2", cpu_count="16")
    assert trials(68) not in ([], [workers])
    assert (trials(95), trials(68, 15)) == ([], [])
    # more workers than cores would only slow one another down
    assert trials(68, num_workers="16", cpu_count="16") not in ([], [workers])


def test_a_step_is_advised_for_what_the_last_one_lacks() -> None:
    earlier, last = (analyze(*step(label)) for label in "ab")
    page = page_of(with_findings(earlier, heat(100, 200)), with_findings(last, gap("tail_idle", 240, 290)))
    kinds = {row["id"]: row["kind"] for row in page["rows"]} | {"": ""}
    found = [kinds[action["finding"]] for action in page["actions"]]
    assert found[0] == "tail_idle"
    assert "thermal_throttle" not in found
    assert [(card["kind"], card["is_open"]) for card in page["findings"]] == [
        ("tail_idle", True),
        ("thermal_throttle", False),
    ]


def test_findings_of_several_runs_are_not_gone_and_told_briefly() -> None:
    missing = NotJudged(kind="cpu_bound", device=None, reason="not recorded", recording="a log of the CPU")
    earlier, last = (analyze(*step(label)) for label in "ab")
    for not_judged, status in (((missing,), "unknown in the last step"), ((), "not found in the last step")):
        page = page_of(with_findings(earlier, gap("cpu_bound")), replace(last, findings=(), not_judged=not_judged))
        assert [card["status"] for card in page["findings"]] == [status]
    several = [
        with_findings(analyze(one), gap("idle_gap", 100, 130 + place)) for place, one in enumerate(step("a", runs=3))
    ]
    page = page_of(*several)
    assert [bool(card["repeats"]) for card in page["findings"]] == [False, True, True]
    assert [row["cards"] for row in page["rows"]] == [["F1", "F2", "F3"]]


def test_a_row_quotes_the_run_that_it_names() -> None:
    earlier, last = (analyze(*step(label)) for label in "ab")
    for is_unknown in (True, False):
        found = [gap("clocks_locked", summary=f"At {mhz} MHz.", is_unknown=is_unknown) for mhz in (1065, 525)]
        found[1] = replace(found[1], lost_gpu_seconds=None if is_unknown else 30.0)
        (row,) = page_of(with_findings(earlier, found[0]), with_findings(last, found[1]))["rows"]
        assert re.findall(r"worst|\(a\)|[0-9]+", row["summary"]) == [*["worst"] * (not is_unknown), "(a)", "1065"]
        assert ("(a)" in row["history"]["title"], "worst" in row["history"]["title"]) == (True, not is_unknown)


def test_a_figure_of_the_whole_run_is_told_from_that_of_the_finding() -> None:
    page = runs.sample_page("io_bound")
    (panel, *_), tile = page["worst"]["panels"], page["tiles"][0]
    assert (tile["value"], panel["note"]) == ("48%", "46% on average over the run")
    (row, *_) = runs.sample_page("imbalance")["rows"]
    assert plain(row["extent"]) == "1.39 GPU-min lost compared with equal use, 12% of the run"


def test_savings_are_promised_once_and_findings_cost_what_their_time_costs() -> None:
    apart = advised(gap("cpu_bound", 100, 160), gap("tail_idle", 500, 560))
    assert [share for kind, share, _ in apart if kind] == ["10%", "10%"]
    together = advised(gap("cpu_bound", 100, 160), gap("no_progress", 150, 560))
    assert [share for kind, share, _ in together if kind] == ["", ""]
    drawn = Evidence(metric="gpu_power_watts", statistic="mean while slowed", observed=226.0, unit="W")
    commands = [command for _, _, command in advised(replace(heat(100, 200), evidence=(drawn,))) if command]
    assert commands == ["nvidia-smi -i 0 -pl 200"]
    for price in (3.6, None):
        settings = {"prices": {"gpu_hour": price, "currency": "EUR", "date": "2026-03-01"}} if price else None
        analysis = gpureport.analyze(run(util=[97.0] * 200 + [0.0] * 60 + [97.0] * 341), settings=settings)
        (card, *_) = page_of(analysis)["findings"]
        assert card["lost_seconds"] == pytest.approx(120, abs=4)
        expected = None if price is None else pytest.approx(card["lost_seconds"] / 3600 * price, abs=1e-4)
        assert card["lost_cost"] == expected
        document = json.loads(build_page(analysis, "json"))
        assert any("€" in text for text in strings(document["spending"])) == (price is not None)


def test_one_command_stands_in_every_format_and_the_raw_query_once() -> None:
    for name in ("thermal_throttle", "low_util_cause_unknown", "dmon", "healthy"):
        for form in ("html", "md", "json", "txt"):
            text = re.sub(r"<[^>]*>", "", build_page(runs.sample(name), form, full=True))
            queries = re.findall(r"--query-gpu=(\S+)", text)
            assert len(queries) <= 1, (name, form)
            for query in queries:
                assert query.startswith("timestamp,index,name,uuid"), (name, form)
                assert text.index("gpureport record") < text.index(query), (name, form)


def test_a_finding_of_any_kind_and_cause_is_told_without_its_figures() -> None:
    kinds = {line["kind"] for line in runs.sample_page("healthy")["answers"][0]["lines"]}
    # where GPU time went rests on the evidence of an imbalance
    for kind in sorted(kinds - {"imbalance"}):
        for cause in (None, "never heard of"):
            page = page_of(with_findings(divided(1, computing=540, idle=60), gap(kind, cause=cause, **GRAVE)))
            (row,) = page["rows"]
            told = [page["verdict"]["sentence"], row["title"], row["summary"], row["advice"], *strings(page["actions"])]
            assert page["verdict"]["kind"] == kind
            assert all((told[0], row["title"], row["summary"])), (kind, cause)
            assert not [text for text in told if re.search(r"[][{}<>@~]|\w\||\bNone\b|  ", text)], (kind, cause)
