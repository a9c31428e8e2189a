"""What a log says happened, wherever a report shows it, and times that no log gave."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gpureport.report import build
from gpureport.report.charts import timeline_strips
from gpureport.report.formats import html
from gpureport.report.formats.json import analysis_json
from gpureport.report.formats.text import markdown, terminal
from gpureport.report.model.report_content import Report
from gpureport.report.runs import log_events
from gpureport.testing import LogEvent, Recording, analyze, event, found, recording, steps, unjudged, with_quality

EVENTS = (
    event("driver_message", 30, "NVRM: Xid 79", line=33),
    event("gpu_lost", 100, "GPU is <lost>", line=102, device="gpu:1"),
    event("gpu_lost", 101, "GPU is lost", line=103, device="gpu:0"),
    event("gpu_lost", 102, "GPU is lost", line=104),
    event("driver_restart", 200, "550.54 -> 560.1", line=210),
    event("no_devices", None, "No devices were found"),
)


def run(*told: LogEvent, synthetic: bool = False, gap: bool = False) -> Recording:
    """Return a run of two GPUs whose log tells events."""
    util = steps((0, 20), (97, 280))
    times = [*range(100), *range(200 if gap else 100, 400 if gap else 300)]
    made = recording(util=[util, util], times=times)
    return with_quality(made, log_events=told, events=len(told), synthetic_time=synthetic, coverage_ratio=0.9)


def report(made: Recording) -> Report:
    """Return the report of one run."""
    return build([(made, analyze(made))], title=None, command="", gpu_hour_price=None, version="0")


def texts(figure: str) -> list[str]:
    """Return what is written in a figure."""
    return [node.text or "" for node in ET.fromstring(figure).iter("text")]  # noqa: S314 - drawn by the project itself


def test_an_event_in_words() -> None:
    """Number, time, kind, GPU, text and line."""
    sentences = [entry.sentence for entry in report(run(*EVENTS)).quality[0].events]
    assert sentences == [
        "E1, 0:00:30, message of the driver: NVRM: Xid 79 (line 33)",
        "E2, 0:01:40, GPU lost (GPU 1): GPU is <lost> (line 102)",
        "E3, 0:01:41, GPU lost (GPU 0): GPU is lost (line 103)",
        "E4, 0:01:42, GPU lost: GPU is lost (line 104)",
        "E5, 0:03:20, driver restarted: 550.54 -> 560.1 (line 210)",
        "E6, time not known, no GPU found: No devices were found (line 1)",
    ]


def test_events_close_together_share_a_number() -> None:
    """Each has its line; numbers that would overprint are one."""
    figure = timeline_strips.draw_timeline(report(run(*EVENTS)).timeline[0], "run")
    assert [text for text in texts(figure) if text.startswith("E")] == ["E1", "E2\N{EN DASH}E4", "E5"]
    assert figure.count('class="s-event"') == 5
    assert "E5 driver restarted at 0:03:20" in figure.partition("</title>")[0]


def test_many_events_in_a_moment_are_one_number() -> None:
    """Numbers never overprint, however many events there are."""
    told = [event("gpu_lost", 100 + place / 10, line=place) for place in range(18)]
    figure = timeline_strips.draw_timeline(report(run(*told)).timeline[0], "run")
    assert [text for text in texts(figure) if text.startswith("E")] == ["E1\N{EN DASH}E18"]


def test_numbers_out_of_order() -> None:
    """Events that are no unbroken row are named, and the rest hinted at."""
    first, second, third, *_ = report(run(*EVENTS)).timeline[0].events
    assert log_events.format_numbers([first]) == "E1"
    assert log_events.format_numbers([third, first]) == "E1 E3"
    assert log_events.format_numbers([first, second, replace(third, id="E9")]) == "E1 E2 …"


def test_of_too_many_events_plain_messages_give_way() -> None:
    """What is listed stays in the order of the log, and the rest is counted."""
    told = [*(event("driver_message", place, f"m{place}") for place in range(40)), event("gpu_lost", 90)]
    (quality,) = report(run(*told)).quality
    assert [entry.name for entry in quality.events] == ["message of the driver"] * 19 + ["GPU lost"]
    assert quality.more_events == "21 more events; the JSON of analyze lists all."


def test_the_page_shows_events() -> None:
    """A legend under the figure, and the list with data quality; text from the log is escaped."""
    page = html.render(report(run(*EVENTS)))
    assert "E5 driver restarted at 0:03:20" in page
    assert "<li>E2, 0:01:40, GPU lost (GPU 1): GPU is &lt;lost&gt; (line 102)</li>" in page
    assert "sev-event" in page.partition("<main>")[2]
    assert "sev-event" not in html.render(report(run())).partition("<main>")[2]


def test_a_terminal_shows_events() -> None:
    """A line of marks under the strips, and the list."""
    content = report(run(*EVENTS))
    lines = terminal.render(content, width=100).splitlines()
    (marks,) = [line for line in lines if line.startswith("  events ")]
    assert [place.start() - 9 for place in re.finditer(r"\^", marks)] == [6, 20, 40]
    assert "  Events          E1, 0:00:30, message of the driver: NVRM: Xid 79 (line 33)" in lines


def test_json_lists_events() -> None:
    """All of them, with their time; the count stays beside them."""
    (entry,) = json.loads(analysis_json.render([analyze(run(*EVENTS))]))["runs"]
    quality = entry["quality"]
    assert (quality["events"], len(quality["log_events"]), quality["synthetic_time"]) == (6, 6, False)
    assert quality["log_events"][1] == {
        "kind": "gpu_lost",
        "at": "2026-03-14T09:28:33.000",
        "line": 102,
        "device": "gpu:1",
        "text": "GPU is <lost>",
    }
    assert quality["log_events"][5]["at"] is None


def test_times_that_no_log_gave() -> None:
    """No date is shown anywhere, coverage is not known, and gaps of the log are not judged."""
    made = run(*EVENTS, synthetic=True, gap=True)
    content, analysis = report(made), analyze(made)
    for text in (html.render(content), terminal.render(content), markdown.render(content)):
        assert "2026-" not in text
    facts = {fact.name: fact.text for fact in content.quality[0].facts}
    recorded = facts["Recorded"].replace("\N{NO-BREAK SPACE}", " ")
    assert recorded == "6 min 39 s in all; the log has no time stamps; times count from --interval"
    assert (facts["Coverage"], "Longest gap" in facts) == ("not recorded", False)
    assert "no time stamps" in content.timeline[0].caption
    assert found(analysis, "log_gap") == []
    assert [entry.device for entry in unjudged(analysis, "log_gap")] == [None]
    quality = json.loads(analysis_json.render([analysis]))["runs"][0]["quality"]
    assert (quality["synthetic_time"], quality["coverage_ratio"]) == (True, None)


@pytest.mark.parametrize(
    ("every", "times", "words"),
    [
        (0.01, 20, "12,000 rows; utilisation changes every 0.20 s: 600 readings, 95% of rows repeat the one before"),
        (1.0, 1, ""),
    ],
)
def test_readings_in_words(every: float, times: int, words: str) -> None:
    """Data quality says how many readings lie behind the rows, where rows repeat one."""
    values = [90 + place * 7 % 9 for place in range(600) for _ in range(times)]
    facts = {fact.name: fact.text for fact in report(recording(every=every, util=values)).quality[0].facts}
    assert facts.get("Readings", "").replace("\N{NO-BREAK SPACE}", " ") == words


def test_a_utilisation_that_never_changes() -> None:
    """Its refresh cannot be told, and rows are still not readings."""
    (quality,) = report(recording(every=0.01, util=steps((100, 6000)), model=None)).quality
    text = next(fact.text for fact in quality.facts if fact.name == "Readings")
    assert "utilisation changes too seldom to tell a refresh: at most 360" in text
