"""Every format shows the same content: each text of the JSON stands in each of them, or a reason why not is given."""

import html
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.testing import build_file, build_page
from tests.samples.archives import unpack
from tests.support import pdf_reading, runs

LEFT_OUT = tomllib.loads(Path(__file__).with_name("left_out.toml").read_text(encoding="utf-8"))


def reasons(*groups: str) -> dict[str, str]:
    return {path: why for group in groups for why, paths in LEFT_OUT[group].items() for path in paths}


ALLOWED = {form: reasons(*groups) for form, groups in LEFT_OUT["formats"].items()}
"""What each format leaves out, by path, and why."""


@dataclass(frozen=True)
class Leaf:
    """A text of a page: the names that lead to it, and of a cell the heading of its row, beside which it must stand."""

    path: str
    text: str
    head: str = ""


REPEATED = ("id", "severity", "lost", "run", "where")
"""What formats show of a finding that another run has too."""
REACH = 4000
"""Characters after the heading of a row within which its cells must stand."""


def leaves(content: object, path: str = "") -> Iterator[Leaf]:
    """Yield every text of a part of a page that is not empty, in order."""
    if isinstance(content, str):
        yield from [Leaf(path, content)] if content else []
    elif isinstance(content, list):
        for entry in content:
            yield from leaves(entry, path)
    elif isinstance(content, dict) and {"columns", "numeric", "rows"} <= content.keys():
        yield from table_leaves(content, path)
    elif isinstance(content, dict):
        hidden = {name for name in content if content.get("repeats") and name not in REPEATED}
        hidden |= {"same"} if content.get("outliers") else set()
        for name in content.keys() - hidden:
            yield from leaves(content[name], f"{path}.{name}".lstrip("."))


def table_leaves(table: Mapping[str, Any], path: str) -> Iterator[Leaf]:
    yield from (Leaf(f"{path}.columns", name) for name in table["columns"] if name)
    for row in table["rows"]:
        head = row["head"]
        yield from (Leaf(f"{path}.cells", text) for text in (head["text"], head["small"]) if text)
        for cell in row["cells"]:
            yield from (Leaf(f"{path}.cells", text, head["text"]) for text in (cell["text"], cell["small"]) if text)
            said = ((cell["change"] or {}).get(name) for name in ("text", "interval", "verdict"))
            yield from (Leaf(f"{path}.cells.change", text, head["text"]) for text in said if text)
    yield from (Leaf(f"{path}.notes", note) for note in table["notes"])


def missing(content: object, shown: str, allowed: Mapping[str, str]) -> list[Leaf]:
    """Return the texts of a page that a format does not show; space and case don't count, so that wrapping doesn't.

    Args:
        content: the page as JSON.
        shown: the words of the format.
        allowed: why a format leaves out what lies under a path; `*` stands for one name.
    """
    words = squeeze(shown)
    patterns = [re.compile(path.replace(".", r"\.").replace("*", r"\w+") + r"(\..*)?") for path in allowed]
    wanted = [leaf for leaf in dict.fromkeys(leaves(content)) if not stands(leaf, words)]
    return [leaf for leaf in wanted if not any(each.fullmatch(leaf.path) for each in patterns)]


def squeeze(text: str) -> str:
    return re.sub(r"[\s\u00ad\u200b]+", "", text).replace("\N{NON-BREAKING HYPHEN}", "-").casefold()


def stands(leaf: Leaf, words: str) -> bool:
    """Return whether a text stands among words, that of a cell after the heading of its row."""
    text, head = squeeze(leaf.text), squeeze(leaf.head)
    if leaf.path.endswith(".columns"):
        # a terminal stacks titles over two lines
        return all(squeeze(word.strip(",")) in words for word in leaf.text.split())
    if not head:
        # a headline is parted from the sentences after it
        return text in words or all(squeeze(part) in words for part in re.split(r"(?<=\.) ", leaf.text))
    # changes are wrapped within their columns, where other cells come between their words, and set before their heading
    is_change = leaf.path.endswith(".cells.change")
    wanted, before = ([squeeze(word) for word in leaf.text.split(" ")], 300) if is_change else ([text], 0)
    at = words.find(head)
    while at >= 0:
        near = words[max(at - before, 0) : at + REACH]
        if all(word in near for word in wanted):
            return True
        at = words.find(head, at + 1)
    return False


def mlflow_runs(folder: Path) -> list[gpureport.Recording]:
    """Return the runs of the store of MLflow that the recorded steps wrote, one of each step."""
    unpack(runs.TRAINING_STEPS / "mlruns.tar.gz", folder)
    return sorted(gpureport.read(f"mlflow:{folder / 'mlruns'}"), key=lambda recording: recording.run.started)


PRICES = {"prices": {"gpu_hour": 2.5, "currency": "USD", "date": "2026-03-01"}}
CONTENTS: dict[str, Callable[[Path], Any]] = {
    "five steps": lambda _: [gpureport.analyze(each.recording, settings=PRICES) for each in runs.recorded_steps()],
    "steps of MLflow with a target": lambda folder: gpureport.compare(mlflow_runs(folder), target="loss=6.9"),
    "a study of MLflow": lambda folder: gpureport.compare(mlflow_runs(folder), by="param:batch,param:workers"),
    "four GPUs": lambda _: [
        gpureport.analyze(each.recording, settings=PRICES) for each in runs.sample("thermal_throttle")
    ],
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow if "steps" in name else ()) for name in CONTENTS],
)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return CONTENTS[request.param](tmp_path_factory.mktemp("content"))


def read_words(results: Any, form: str, folder: Path) -> str:
    """Return what a reader of a format reads, in its long form unless it is called short."""
    short, _, kind = form.rpartition(".")
    found = build_file(results, kind, full=not short)
    if kind == "pdf":
        (folder / "report.pdf").write_bytes(found)
        return pdf_reading.body(folder / "report.pdf")
    text = found.decode()
    if kind in {"html", "svg"}:
        bare = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        labels = " ".join(re.findall(r'aria-label="([^"]*)"', bare))
        return html.unescape(labels + re.sub(r"<[^>]+>", " ", bare))
    return html.unescape(text.replace("\\", "")).replace("<br>", " ") if kind == "md" else text


@pdf_reading.needs_poppler
def test_every_text_of_a_page_stands_in_every_format(results: Any, tmp_path: Path) -> None:
    content = json.loads(build_page(results, "json"))
    lost = {form: missing(content, read_words(results, form, tmp_path), why) for form, why in ALLOWED.items()}
    charts = content["comparison"]["charts"] if content["comparison"] else []
    why = {path.removeprefix("comparison.charts."): reason for path, reason in reasons("keys").items()}
    lost[".svg"] = missing(charts, read_words(results, ".svg", tmp_path), why)
    assert lost == {form: [] for form in (*ALLOWED, ".svg")}


def test_a_check_that_was_not_assessed_has_its_reason(results: Any) -> None:
    content = json.loads(build_page(results, "json"))
    lines = content["judgement"]["lines"]
    answers = [line for run in content["answers"] for line in run["lines"]]
    unknown = {line["title"] for line in answers if line["outcome"] == "cannot judge"}
    # in how many runs stands beside a kind that some could judge
    assert unknown <= {kind.partition(" (")[0] for line in lines for kind in line["kinds"]}
    assert [line for line in lines if not line["reason"]] == []


def test_what_a_format_lacks_is_noticed(tmp_path: Path) -> None:
    analyses = runs.sample("thermal_throttle")
    content = runs.sample_page("thermal_throttle")
    text = read_words(analyses, ".txt", tmp_path)
    cut = text.replace(content["findings"][0]["recommendations"][0].split()[0], "")
    assert "findings.recommendations" in {leaf.path for leaf in missing(content, cut, ALLOWED[".txt"])}
    row = content["gpus"][0]["table"]["rows"][0]
    head, cell = row["head"]["text"], row["cells"][0]["text"]
    assert Leaf(".cells", cell, head) in missing(content["gpus"][0]["table"], f"{cell} {head}", {})


def test_no_reason_outlives_what_it_excuses() -> None:
    pages = [*map(runs.sample_page, ("thermal_throttle", "faulty_hardware")), runs.page_of(*runs.recorded_steps())]
    paths = {leaf.path for page in pages for leaf in leaves(page)}
    stale = {path for kind in ALLOWED.values() for path in kind if not any(each.startswith(path) for each in paths)}
    assert stale == set()
