"""The page as Markdown: the result first, at most 20,000 bytes."""

import re
from dataclasses import replace

from gpureport.testing import analyze, build_page, finding
from tests.report.test_agreement import SETS
from tests.support import runs
from tests.support.runs import plain, run, with_run

LIMIT = 20_000


def test_samples_and_many_gpus_are_far_below_the_limit() -> None:
    for name, folders in SETS.items():
        text = build_page(runs.sample(*folders), "md")
        assert "Shortened" not in text, name
        assert len(text.encode()) < 12_000, name
    assert len(build_page(run(gpus=64, seconds=120), "md").encode()) < 8_000


def test_the_result_comes_first_and_the_page_last() -> None:
    content = runs.page_of(*runs.recorded_steps())
    lines = build_page(runs.recorded_steps(), "md").splitlines()
    assert plain(lines[0]) == plain(f"# {content['verdict']['sentence']}")
    assert lines[-1].startswith("gpureport ")
    headings = [line for line in lines if line.startswith("#")]
    assert len(headings) >= 4


def test_bars_are_as_long_as_their_gpu_time() -> None:
    content = runs.page_of(*runs.recorded_steps())
    text = build_page(runs.recorded_steps(), "md")
    drawn = re.findall(r"^\| (\d-[a-z-]+)[^|]* \| `([^`]*)` \|", text, re.MULTILINE)
    bars = {name: len(signs) for name, signs in drawn}
    amounts = {bar["label"]: sum(part["value"] for part in bar["segments"]) for bar in content["spent"]["bars"]}
    longest = max(amounts.values())
    assert max(bars.values()) == 24
    assert [name for name, count in bars.items() if abs(count - 24 * amounts[name] / longest) > 1] == []


def test_a_page_of_many_steps_of_long_names_stays_below_the_limit() -> None:
    made = []
    for place in range(40):
        one = analyze(with_run(run(f"{place} {'训' * 500}", seconds=60), step=f"{place} {'练' * 300}"))
        found = [finding(f"{kind}{place}", (10, 40), lost=9.0) for kind in ("idle_gap", "io_bound")]
        made.append(replace(one, findings=tuple(found)))
    text = build_page(made, "md")
    assert 10_000 < len(text.encode()) <= LIMIT
    assert text.splitlines()[-1].startswith("gpureport ")


def test_a_line_that_begins_with_a_figure_is_not_a_list() -> None:
    for name, shown in (("1. one", "1\\. one"), ("- three", "\\- three"), ("=== four", "\\=== four")):
        assert shown in build_page(with_run(run(), step=name, name=name), "md", title=name), name
