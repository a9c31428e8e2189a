"""What holds of every report: each function yields what is wrong with one."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import ge, gt, le, lt
from typing import Any

from tests.support.runs import ReadPage, off, plain

Json = dict[str, Any]

LOST = ("startup", "waiting_for_input", "throttled", "hollow", "low_use", "idle", "unused", "tail", "gpu_lost")
SEVERITIES = ("problem", "warning", "info")
_RELATIONS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.:]\d+)*")
_TEMPLATES = {"0", "100", "95", "5"}
"""Numbers in words of every page: 0 to 100%, intervals of 95%, utilisation of 5%."""
_PROGRAM_WORDS = re.compile(
    r"\b(kinds?|devices?|episodes?|famil(y|ies)|comparability|replicates?|settled|held|judged?|told|tells?)\b|[≥≤∈]"
)
"""Words of the program and signs for logic, which no reader meets in the open part of a report."""
_METRIC_NAME = re.compile(r"\b[a-z0-9]+_[a-z0-9_]+")
_OF_USERS = re.compile(r"val_loss|precision=\w+")
_MOST_LINES, _WIDTH, _MOST_WORDS, _MOST_SUMMARY = 30, 80, 16, 40


@dataclass(frozen=True, kw_only=True)
class Made:
    """What the program made of one source: JSON of the analysis, text in a terminal, and pages by their extension."""

    analysis: Json
    screen: str
    full: str
    pages: dict[str, str]

    @cached_property
    def report(self) -> Json:
        found: Json = json.loads(self.pages["json"])
        return found

    @cached_property
    def words(self) -> dict[str, str]:
        page = ReadPage(self.pages["html"]).words
        texts = {"html": " ".join(page), "md": self.pages["md"].replace("\\", ""), "txt": self.full}
        return {form: plain(text) for form, text in texts.items()}


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        yield str(len(value))
        for inner in value:
            yield from _strings(inner)


def find_faults(made: Made) -> list[str]:
    checks = (check_screen, check_words, check_findings, check_actions, check_numbers, check_evidence, check_page)
    return [f"{check.__name__.removeprefix('check_')}: {fault}" for check in checks for fault in check(made)]


def check_screen(made: Made) -> Iterator[str]:
    """A screen is at most 30 lines of 80 signs, begins with the headline and says where there is more."""
    lines, headline = made.screen.splitlines(), plain(made.report["verdict"]["sentence"]).split()
    if len(lines) > _MOST_LINES:
        yield f"{len(lines)} lines"
    yield from (f"wide: {line}" for line in lines if len(line) > _WIDTH and " " in line.strip())
    if lines[0].split() != headline[: len(lines[0].split())]:
        yield f"begins with {lines[0]!r}"
    if "Details: --detail full" not in lines or not any("gpureport report " in line for line in lines[-4:]):
        yield "does not say where there is more"


def check_words(made: Made) -> Iterator[str]:
    """Headline, lead, summaries, advice and reasons are short and plain, and said once."""
    verdict = made.report["verdict"]
    headline, lines = plain(verdict["sentence"]), [*verdict["details"], *verdict["notes"]]
    if len(headline.split()) > _MOST_WORDS or re.search(r"[()\[\]]|\.\.$", headline) or headline[0].islower():
        yield f"headline {headline!r}"
    if len(verdict["details"]) > 4 or len({headline, *lines}) < len(lines) + 1:
        yield "a long lead, or a sentence said twice"
    runs = made.analysis["runs"]
    summaries = [finding["summary"] for run in runs for finding in run["findings"]]
    yield from (f"long: {text}" for text in summaries if len(text.split()) > _MOST_SUMMARY)
    for text in map(plain, (headline, *lines, *summaries)):
        if not text.endswith((".", "?")) or _METRIC_NAME.search(_OF_USERS.sub("", text)):
            yield f"no sentence for people: {text}"
    advice = [finding["recommendation"] for run in runs for finding in run["findings"]]
    reasons = [entry["reason"] for run in runs for entry in run["not_judged"]]
    yield from (
        f"{text!r}" for text in (headline, *lines, *summaries, *advice, *reasons) if _PROGRAM_WORDS.search(text)
    )


def check_findings(made: Made) -> Iterator[str]:
    """Each finding is of one row, the gravest row first, and every form names each row."""
    report = made.report
    cards = {card["id"]: card for card in report["findings"]}
    if Counter(card for row in report["rows"] for card in row["cards"]) != Counter(list(cards)):
        yield "a finding in no row, or in two"
    found = {(each["kind"], each["cause"]) for run in made.analysis["runs"] for each in run["findings"]}
    if len(report["rows"]) != len(found):
        yield f"{len(report['rows'])} rows of {len(found)} kinds and causes"
    if [row for row in report["rows"] if {cards[card]["kind"] for card in row["cards"]} != {row["kind"]}]:
        yield "a finding in the row of another kind"
    ranks = [(SEVERITIES.index(row["severity"]), -_worst_loss(row, cards)) for row in report["rows"]]
    if ranks != sorted(ranks):
        yield f"not the gravest first: {ranks}"
    for row in report["rows"]:
        wanted = ("title", "runs", "summary", "advice", *(["extent"] if row["kind"] != "full_precision" else []))
        yield from (f"{row['kind']} without {key}" for key in wanted if not row[key])
        yield from (f"{row['kind']} not in {form}" for form, text in made.words.items() if row["title"] not in text)
        if re.search(r"[≥≤{}]|[<>]=|pragmatic|None|_ratio|_bytes", f"{row['extent']} {row['cost']} {row['advice']}"):
            yield f"{row['kind']}: {row['extent']} {row['cost']} {row['advice']}"


def _worst_loss(row: Json, cards: dict[str, Json]) -> float:
    by_run: Counter[int] = Counter()
    for card in (cards[name] for name in row["cards"]):
        by_run[card["run_index"]] += card["lost_seconds"] or 0
    return round(max(by_run.values()), 6)


def check_actions(made: Made) -> Iterator[str]:
    """At most three things to do, each with a gain, a reason and how sure it is; savings add up to no more than all."""
    actions, rows = made.report["actions"], {row["id"] for row in made.report["rows"]}
    if len(actions) > 3 or len({action["title"] for action in actions}) < len(actions):
        yield f"{[action['title'] for action in actions]}"
    for action in actions:
        text = " ".join(action[key] for key in ("title", "gain", "text", "certainty"))
        complete = all(action[key] for key in ("title", "gain", "text", "certainty"))
        if not complete or action["finding"] not in rows | {""} or re.search(r"[≥≤{}]|[<>]=|None|may up to", text):
            yield text
    saved = (re.match(r"Saves up to ([\d.]+)%", plain(action["gain"])) for action in actions)
    if sum(float(share[1]) for share in saved if share) > 100:
        yield "saves more than all"


def check_numbers(made: Made) -> Iterator[str]:
    """Every number that is read is one of the JSON, key figures stand in each form, words are rounded values."""
    report = made.report
    known = {number for text in _strings(report) for number in _NUMBER.findall(plain(text))} | _TEMPLATES
    known |= {str(len(card["occurrences"])) for card in report["findings"]}
    known |= {str(place) for card in report["findings"] for place, _ in enumerate(card["steps"], 1)}
    for form, text in made.words.items():
        # how many samples the charts of the page hold, and how they are rounded, stands there alone
        of_charts = next(re.finditer(r"The charts show .*? samples themselves\.", text), [""])[0]
        if strange := {*_NUMBER.findall(text.replace(of_charts, ""))} - known:
            yield f"{form} has numbers of its own: {sorted(strange)}"
        parts = [part["text"] for bar in report["gpu_time"] if bar["whole"] for part in bar["parts"]]
        wanted = [tile["value"] for tile in report["tiles"]]
        # the heading of a column may have the words around amount and share
        lost = (card["lost"].removeprefix("up to ").partition("%")[0] for card in report["findings"])
        wanted += [] if form == "md" else [*parts, *lost]
        yield from (f"{form} lacks {value}" for value in wanted if plain(value) not in text)
    for bar in report["gpu_time"]:
        total = sum(part["seconds"] for part in bar["parts"])
        for part in bar["parts"]:
            # classes too small to show are left out of the ratios, not of the whole
            if off(part["text"], part["ratio"]) > 0.506 or off(part["hours"], part["seconds"]) > 0.501:
                yield f"rounded wrongly: {part}"
            if abs(part["ratio"] - part["seconds"] / total) > 2e-6:
                yield f"no share of the whole: {part}"
    yield from _check_lost(made)


def _check_lost(made: Made) -> Iterator[str]:
    """Yield where the lead says another share than the classes that are lost."""
    (run, *others) = made.analysis["runs"]
    told = [plain(line) for line in made.report["verdict"]["details"] if "was lost" in line]
    if others or not told or told[0].startswith(("Hardly", "GPU time")):
        return
    classes = Counter[str]()
    for each in run["gpu_time"].values():
        classes.update({name: seconds for name, seconds in each.items() if seconds and name != "no_job"})
    share = sum(classes[name] for name in LOST) / classes.total()
    said = re.search(r"(\d+(?:\.\d)?)%", told[0])
    if said is None or abs(float(said[1]) - 100 * share) > 0.5:
        yield f"{told[0]!r} of {100 * share:.2f}%"


def check_evidence(made: Made) -> Iterator[str]:
    """A value that is shown with a limit stands to it as the finding says."""
    for finding in (each for run in made.analysis["runs"] for each in run["findings"]):
        for one in finding["evidence"]:
            observed, relation, limit = one["observed"], one["relation"], one["threshold"]
            if limit is not None and not (relation in _RELATIONS and _RELATIONS[relation](observed, limit)):
                yield f"{finding['kind']}: {one['metric']} {one['statistic']} {observed} {relation} {limit}"


def check_page(made: Made) -> Iterator[str]:
    """The page loads nothing from elsewhere, and no form shows a traceback or what stands for nothing."""
    page = made.pages["html"]
    yield from re.findall(r"<link\b[^>]*>|<script[^>]+src=[^>]*>|<img[^>]+src=\"(?!data:)[^>]*>|@import[^;]*;", page)
    yield from re.findall(r"url\((?!['\"]?(?:data:|#))[^)]*\)", page)
    for form, text in (*made.words.items(), ("screen", made.screen)):
        yield from (
            f"{form}: {word}" for word in re.findall(r"Traceback|\bnan\b|\bNone\b(?![,.;])|<object|\binf\b", text)
        )
