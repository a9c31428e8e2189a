"""Every command, kind and metric is documented, and the page says what the code says."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from gpureport.analysis import RULES
from gpureport.analysis.engine.selection import list_settings, list_thresholds
from gpureport.answers import Answer, ChecklistEntry
from gpureport.cli.main import gpureport
from gpureport.comparison.across_runs.across_findings import BATCH_SIZE, GPU_KINDS, SCALING
from gpureport.comparison.across_runs.memory_fit import MemoryFit
from gpureport.comparison.chain.step_summaries import StepSummary
from gpureport.comparison.steps.remaining_loss import RemainingLoss
from gpureport.metrics import METRICS
from gpureport.testing import GPU_TIME_CLASSES, Check, CheckOutcome, Delta, MetricSummary, Quality, Verdict
from tests.docs import kinds_page, llms_index, man_page, pages, secrets_page
from tests.docs.kind_pictures import PICTURES, draw_kind
from tests.docs.kind_signs import SIGNS
from tests.docs.rooms_picture import draw_rooms

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "../explanation/advice.md": pages.advice_page,
    "../images/rooms.svg": draw_rooms,
    "cli.md": pages.cli_page,
    "kinds.md": kinds_page.kinds_page,
    "limits.md": pages.limits_page,
    "metrics.md": pages.metrics_page,
    "oddities.md": pages.oddities_page,
    "python.md": pages.python_page,
    "secrets.md": secrets_page.secrets_page,
    "sources.md": pages.sources_page,
    "../gpureport.1": man_page.man_page,
    # takes its sentences from the pages above
    "../llms.txt": llms_index.llms_index,
}


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_is_what_the_code_says(name: str, *, update_golden: bool) -> None:
    """A reference page equals what is made from the code; --update-golden rewrites it."""
    page = REFERENCE / name
    made = PAGES[name]()
    if update_golden:
        page.write_text(made, encoding="utf-8", newline="\n")
    assert page.read_text(encoding="utf-8") == made


def test_index_names_every_page() -> None:
    """llms.txt, and with it the navigation of the site, names each page but the decisions, which have an index."""
    docs = REFERENCE.parent
    pages_of_docs = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    expected = {name for name in pages_of_docs if not name.startswith("decisions/0")}
    assert set(re.findall(r"\]\(([^)]+\.md)\)", llms_index.llms_index())) == expected


def test_every_kind_has_a_section_and_a_condition() -> None:
    """Each kind of finding has a heading, and its rule states the condition in words."""
    headings = {line[3:] for line in kinds_page.kinds_page().splitlines() if line.startswith("## ")}
    kinds = {kind for rule in RULES for kind in rule.kinds}
    assert kinds == headings
    assert [type(rule).__name__ for rule in RULES if not type(rule).__doc__] == []


def test_every_kind_has_a_sign_and_a_picture() -> None:
    """The handbook says how each kind shows: a line in kind_signs.py; kind_pictures.py draws its series."""
    assert set(SIGNS) == {kind for rule in RULES for kind in rule.kinds}
    assert {path.stem for path in PICTURES.iterdir()} == set(SIGNS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIGNS)
def test_pictures_show_the_samples(kind: str) -> None:
    """A picture is what the script draws from the sample of today."""
    assert (PICTURES / f"{kind}.svg").read_text(encoding="utf-8") == draw_kind(kind), (
        "python -m tests.docs.kind_pictures"
    )


def test_every_part_of_an_analysis_is_described() -> None:
    """Each field of an answer, an entry of the checklist, and each class of GPU time has a row in the page on JSON."""
    page = (REFERENCE / "analysis-json.md").read_text(encoding="utf-8")
    described = {name for line in page.splitlines() if line.startswith("| `") for name in line.split("|")[1].split("`")}
    parts = {field.name for kind in (Answer, ChecklistEntry) for field in fields(kind)} | {"reason", "recording"}
    # what only the report makes words of
    parts -= {"missing", "metrics", "other_recordings"}
    assert (parts | set(GPU_TIME_CLASSES)) - described == set()


def test_every_part_of_a_check_is_described() -> None:
    """Each field of a check has a row in the page on its JSON, and each outcome is named."""
    page = (REFERENCE / "check-json.md").read_text(encoding="utf-8")
    described = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert {field.name for field in fields(Check)} - described == set()
    assert [outcome.value for outcome in CheckOutcome if f"`{outcome.value}`" not in page] == []


def test_every_metric_has_a_row() -> None:
    """Each metric has one row of its own."""
    rows = [line.split("`")[1] for line in pages.metrics_page().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(metric.name for metric in METRICS)


def test_every_command_says_what_it_does() -> None:
    """Each command has a help text of its own."""
    silent = [name for name, command in pages.commands(gpureport, "gpureport") if not command.help]
    assert silent == []


def test_every_statistic_and_account_is_described() -> None:
    """Each field of a metric's statistics and of the quality has a row in the page on the JSON."""
    page = (REFERENCE / "analysis-json.md").read_text(encoding="utf-8")
    described = {name for line in page.splitlines() if line.startswith("| `") for name in line.split("|")[1].split("`")}
    names = {field.name for kind in (MetricSummary, Quality) for field in fields(kind)} - {"metric"}
    assert names - described == set()


def test_every_threshold_has_a_source() -> None:
    """Each default limit says where it comes from."""
    unsourced = [name for rule in RULES for name, limit in list_thresholds(rule).items() if not limit.source]
    assert unsourced == []


def test_a_rule_offers_few_settings() -> None:
    """Five at most are worth a person's time; the other limits are constants."""
    assert [rule.kinds for rule in RULES if len(list_settings(rule)) > 5] == []


def test_every_part_of_a_difference_is_described() -> None:
    """Each field of a difference has a row in the page on the JSON of a comparison, and each verdict is named."""
    page = (REFERENCE / "comparison-json.md").read_text(encoding="utf-8")
    described = {name for line in page.splitlines() if line.startswith("| `") for name in line.split("|")[1].split("`")}
    assert {field.name for field in fields(Delta)} - described == set()
    parts = {field.name for kind in (StepSummary, MemoryFit, RemainingLoss) for field in fields(kind)}
    assert parts - {"too_short_run"} | {"brief"} <= described
    assert [kind for kind in (SCALING, BATCH_SIZE, GPU_KINDS) if f"| `{kind}` |" not in page] == []
    assert [verdict.value for verdict in Verdict if f"`{verdict.value}`" not in page] == []
