"""The page: self-contained, safe, whole without its script."""

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from gpureport.testing import build_page
from tests.support import runs
from tests.support.hostile import TEXTS, steps_with
from tests.support.runs import ReadPage, run

FETCHING = {"src", "srcset", "poster", "data", "action", "formaction", "background"}
RESULTS: dict[str, Callable[[], Any]] = {
    "a run with findings": lambda: runs.sample("thermal_throttle"),
    "a broken log": lambda: runs.sample("faulty_hardware"),
    "steps": runs.recorded_steps,
    "64 GPUs": lambda: run(gpus=64, seconds=120),
    "no finding": lambda: runs.divided(computing=600),
    "hostile names": lambda: steps_with(TEXTS["script"]),
}


@pytest.fixture(scope="module", params=RESULTS)
def page(request: pytest.FixtureRequest) -> str:
    return build_page(RESULTS[request.param](), "html")


def digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def test_elements_are_nested_and_every_reference_has_its_target(page: str) -> None:
    parsed = ReadPage(page)
    assert parsed.open == []
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    targets = {value.removeprefix("#") for value in parsed.values("href") if value}
    painted = set(re.findall(r"url\(#([^)]+)\)", page))
    assert (targets | painted) - set(ids) == set()


def test_nothing_is_fetched_and_one_script_runs(page: str) -> None:
    parsed = ReadPage(page)
    names = {name for name, _ in parsed.attributes}
    assert not names & (FETCHING | {"style"})
    assert not [name for name in names if name.startswith("on")]
    assert not {"link", "img", "iframe", "object", "form"} & set(parsed.tags)
    assert "http://" not in page
    assert "https://" not in page
    openings = re.findall(r"<script([^>]*)>", page)
    # any other script element is data, which a browser does not run
    data = [each for each in openings if re.match(r' type="application/(json|octet-stream)" id="[a-z0-9-]+"', each)]
    assert (len(openings) - len(data), page.count("</script>")) == (1, len(openings))


def test_the_policy_allows_style_sheet_and_script_and_nothing_else(page: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.replace("&#39;", "'").split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest(style)}'",
        f"script-src 'sha256-{digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # small enough to read
    assert len(style.encode()) + len(script.encode()) <= 40_000


def test_the_sections_that_every_page_has(page: str) -> None:
    parts = ("verdict", "gpu-time", "findings", "timeline", "gpus", "quality", "not-assessed", "method")
    assert [part for part in parts if f'<section id="{part}"' not in page] == []


def test_a_page_of_one_moment_has_no_script() -> None:
    page = build_page(run(seconds=0), "html")
    assert "<script" not in page
    assert "script-src" not in page


def test_a_finding_leads_to_its_mark() -> None:
    found = ReadPage(build_page(runs.sample("thermal_throttle"), "html"))
    links = [value.removeprefix("#") for value in found.values("href") if value.startswith("#run")]
    assert links
    assert set(links) <= set(found.values("id"))


def test_a_title_of_a_persons_own_stands_above_what_was_read() -> None:
    for title in ("Training for Norvik", ""):
        assert ("<b>Training for Norvik</b><br>" in build_page(run(), "html", title)) == bool(title)


def test_terms_and_checks_are_explained_where_they_stand() -> None:
    found = ReadPage(build_page(runs.sample("thermal_throttle"), "html"))
    titles = found.values("title")
    assert len([title for title in titles if len(title.split()) > 4]) >= 20
    assert not [title for title in titles if "<" in title]
