"""The headline of every sample log and of several chains: what a person would say, in at most sixteen words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import gpureport
from gpureport.metrics import BY_NAME
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.report.runs import gpu_time
from gpureport.report.wording import terms
from gpureport.report.wording.display import GAP
from gpureport.report.wording.headlines import LONGEST, count_words
from gpureport.testing import Analysis, Recording, Work
from tests.genuine import CORPUS, needs_corpus
from tests.report.sample_reports import CHAIN, SAMPLES, report_on, runs

_OTHER = {"recorded", "input_starved", "mapped"}
LOGS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name not in _OTHER)
FORBIDDEN = re.compile(
    r"\b(kinds?|devices?|episodes?|family|comparability|replicates|settled|held|judged|told)\b|[≥≤∈]|[<>]=",
    re.IGNORECASE,
)
"""Words that reports do not use, and symbols of logic."""
SHARES = re.compile(r"(\d+(?:\.\d)?) ?%")


def read_steps(every: int = 1) -> list[tuple[Recording, Analysis]]:
    """Return the recorded training steps as steps of three runs; of every third run as steps of one."""
    made: list[tuple[Recording, Analysis]] = []
    for folder in sorted((SAMPLES / "recorded" / "training_steps").glob("*/[123]"))[::every]:
        (recording,) = gpureport.read(folder)
        work = Work(amount=32_768.0, unit="images")
        labelled = replace(recording, run=replace(recording.run, step=folder.parent.name, work=work))
        made.append((labelled, gpureport.analyze(labelled)))
    return made


def make_report(pairs: Sequence[tuple[Recording, Analysis]]) -> Report:
    """Return the report on some runs."""
    return build(pairs, title=None, command="", gpu_hour_price=None, version="0")


def plain(text: str) -> str:
    """Return text with ordinary spaces, and per cent signs beside their numbers."""
    return text.replace(GAP, " ").replace(" %", "%")


def find_faults(content: Report) -> Iterator[str]:
    """Yield what is wrong with the headline, the lead and the notes of a report."""
    sentence = plain(content.verdict.sentence)
    if count_words(sentence) > LONGEST:
        yield f"{count_words(sentence)} words"
    if re.search(r"[()\[\]]", sentence):
        yield "a bracket"
    if not sentence.endswith(".") or sentence.endswith(".."):
        yield "no full stop at its end"
    if not sentence[0].isupper() and not sentence[0].isdigit():
        yield "no capital at its beginning"
    if len(content.verdict.details) > 4:
        yield f"a lead of {len(content.verdict.details)} lines"
    lines = [sentence, *map(plain, (*content.verdict.details, *content.verdict.notes))]
    for line in lines:
        words = set(re.findall(r"[a-z_]+", line))
        yield from (f"{word!r} in {line!r}" for word in words & {*BY_NAME, *terms.KINDS})
        yield from (f"{match[0]!r} in {line!r}" for match in FORBIDDEN.finditer(line))
        if "  " in line or not line.endswith((".", "?")):
            yield f"a double space, or no full stop: {line!r}"
    if len(set(lines)) < len(lines):
        yield "a sentence said twice"


def test_the_samples_are_read() -> None:
    """The tests below are of many logs."""
    assert len(LOGS) > 35


@pytest.mark.parametrize("name", LOGS)
def test_the_headline_of_a_sample(name: str) -> None:
    """Short, without brackets and metrics, in plain words."""
    content = report_on((name,))
    assert list(find_faults(content)) == [], content.verdict.sentence


@pytest.mark.parametrize("name", LOGS)
def test_the_share_in_the_lead_is_that_of_the_bars(name: str) -> None:
    """What a lead says was lost is the sum of the classes that are lost."""
    content, (pair, *_) = report_on((name,)), runs(name)
    (loss,) = [line for line in map(plain, content.verdict.details) if "was lost" in line] or [""]
    lost = sum(gpu_time.lost_seconds_by_class([pair[1]]).values()) / pair[1].job_gpu_seconds
    if loss and not loss.startswith(("Hardly", "GPU time")):
        assert float(SHARES.findall(loss)[0]) == pytest.approx(100 * lost, abs=0.5)


def test_the_headline_of_a_chain_of_single_runs() -> None:
    """It says that nothing is confirmed, and names no cause."""
    content = report_on(CHAIN)
    assert list(find_faults(content)) == []
    assert plain(content.verdict.sentence).endswith("; unconfirmed, one run each.")
    assert content.verdict.details[0].startswith("Repeat every step before you rely on it.")


@pytest.mark.slow
def test_the_headlines_of_the_recorded_steps() -> None:
    """What saved GPU time, in the words of the step that did; and each pair of steps by itself."""
    pairs = read_steps()
    whole, first, last, single = (make_report(each) for each in (pairs, pairs[:6], pairs[9:], read_steps(3)))
    assert [list(find_faults(each)) for each in (whole, first, last, single)] == [[]] * 4
    assert [plain(each.verdict.sentence) for each in (whole, first, last)] == [
        "52% less GPU time per image; most of it from more loader workers.",
        "46% less GPU time per image with more loader workers.",
        "No clear change in GPU time per image.",
    ]
    assert plain(single.verdict.sentence).endswith("% less GPU time per image; unconfirmed, one run each.")


@pytest.mark.slow
@needs_corpus
def test_the_headlines_of_genuine_logs() -> None:
    """No log out there makes a headline that nobody would say."""
    faults = {}
    for log in sorted((CORPUS / "corpus").rglob("*")):
        try:
            pairs = [(one, gpureport.analyze(one)) for one in gpureport.read(log)] if log.is_file() else []
        except (ValueError, gpureport.errors.GpureportError):
            continue
        for pair in pairs[:1]:
            content = make_report([pair])
            if found := list(find_faults(content)):
                faults[log.name] = (content.verdict.sentence, found)
    assert not faults
