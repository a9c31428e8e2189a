"""One label on one step or GPU has one figure, in every section of every format, of every sample log."""

import json
import re
from dataclasses import asdict

import pytest

import gpureport
from gpureport.report import build, render
from gpureport.report.explain.explained_classes import KINDS_BY_CLASS
from gpureport.report.formats.text import terminal_comparison
from gpureport.report.model.report_content import Report
from gpureport.report.sections.comparison import comparison_content
from gpureport.report.wording import terms
from gpureport.report.wording.display import GAP
from tests.quick_share import keep_quick
from tests.report import examples, labelled, sample_reports
from tests.report.test_agreement import shown

_CHAINS: dict[str, list[tuple[str, str | None, tuple[float, str]]]] = {
    "three steps": [(folder, None, (1000, "steps")) for folder in sample_reports.CHAIN],
    "three steps of three runs": [
        (f"recorded/training_steps/{step}/{run}", step, (32768, "images"))
        for step in ("1-starved", "2-more-workers", "3-pinned-memory")
        for run in (1, 2, 3)
    ],
    "runs of unequal work": [
        (f"recorded/training_steps/{step}/{run}", step, (32768 / run, "images"))
        for step in ("1-starved", "2-more-workers")
        for run in (1, 2, 3)
    ],
}
_SINGLE = sorted(
    path.parent.name
    for path in sample_reports.SAMPLES.glob("*/README.md")
    # a table with a map is read with an option only, and steps are a chain
    if path.parent.name not in {"recorded", "mapped", "input_starved"}
)
_EXTENSIONS = (".json", ".md", ".html", ".txt")


def _chain(name: str) -> list[examples.Pair]:
    """Return the runs of a chain of steps, with their work."""
    found: list[examples.Pair] = []
    for folder, step, work in _CHAINS[name]:
        (recording,) = gpureport.read(
            sample_reports.SAMPLES / folder, labels={"name": folder, "step": step, "work": work}
        )
        found.append((recording, gpureport.analyze(recording)))
    return found


def _report(runs: list[examples.Pair]) -> Report:
    return build(runs, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")


def _figures(content: Report, steps: list[str]) -> list[labelled.Labelled]:
    """Return every labelled figure of a report, from every format."""
    found: list[labelled.Labelled] = []
    for extension in _EXTENSIONS:
        text = render(content, extension).decode()
        found += labelled.figures(text, extension, steps)
        if extension != ".json":
            found += labelled.sentences(shown(content, extension), extension, steps[-1])
    return found


@pytest.mark.parametrize("folder", keep_quick(_SINGLE, 4))
def test_one_label_has_one_figure_in_a_run(folder: str) -> None:
    """Tiles, headline, bars, tables and sentences of every sample log; no finding lost more than the class it is in."""
    content = sample_reports.report_on([folder])
    (recording, _), *others = sample_reports.runs(folder)
    assert others == []
    found = _figures(content, [recording.run.name])
    assert len({each.label for each in found}) >= 4
    assert labelled.disagreements(found) == []
    held = {name: kinds for name, kinds in KINDS_BY_CLASS.items() if not {"thermal_throttle", "hollow_util"} & {*kinds}}
    classes = {kind: name for name, kinds in held.items() for kind in kinds}
    shares = {each.label: labelled.amount(each.text) for each in found if each.label.startswith("time: ")}
    for card in content.findings:
        lost = re.search(r"\(([\d.]+ %) of the run", card.lost.replace(GAP, " "))
        if not lost or card.root or card.kind not in classes:
            continue
        mine, whole = labelled.amount(lost[1]), shares[f"time: {terms.CLASSES[classes[card.kind]]}"]
        assert mine is not None
        assert whole is not None
        assert mine[0] <= whole[0] + mine[1] + whole[1], card.title


@pytest.mark.parametrize(
    "name", [name if name == "three steps" else pytest.param(name, marks=pytest.mark.slow) for name in _CHAINS]
)
def test_one_label_has_one_figure_in_a_chain(name: str) -> None:
    """Of every step, in the report and in the comparison, means of repetitions among them."""
    runs = _chain(name)
    content = _report(runs)
    steps = list(dict.fromkeys(recording.run.step or recording.run.name for recording, _ in runs))
    found = _figures(content, steps)
    view = comparison_content.build_comparison_view(runs)
    found += labelled.sentences(terminal_comparison.render(view, width=400), "compare", steps[-1])
    document = json.dumps(asdict(view))
    found += labelled.figures(document, ".json", steps)
    labels = {each.label for each in found}
    texts = [*(shown(content, extension) for extension in _EXTENSIONS), terminal_comparison.render(view, width=400)]
    ends = (steps[0], steps[-1])
    told = [each for text in texts for each in labelled.changes(text, "headline", labels, ends)]
    assert told or name != "three steps of three runs"
    found += told
    assert len({(each.label, each.of) for each in found}) >= 10 * len(steps)
    assert labelled.disagreements(found) == []
