"""What axe finds wrong with the pages for readers who see little, see no colour or use no mouse."""

import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SAMPLES = Path(__file__).parents[2] / "sample_logs"
STEPS = (
    "input_starved/1-baseline",
    "input_starved/2-more-workers",
    "input_starved/3-mixed-precision",
    "mem_leak",
    "thermal_throttle",
)


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core, which a package of the test extra carries."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def samples_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of one sample, and of five as steps."""
    folder = tmp_path_factory.mktemp("samples")
    logs = [str(SAMPLES / name) for name in STEPS]
    for name, sources in {"one": logs[-1:], "five": logs}.items():
        command = [sys.executable, "-m", "gpureport", "report", *sources, "-o", str(folder / f"{name}.html")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of forty nights, one figure of which changes for good."""
    from gpureport.nightly.changes import trend  # noqa: PLC0415 - only when a browser is there
    from gpureport.nightly.site import site_writing  # noqa: PLC0415 - only when a browser is there
    from tests.nightly import made  # noqa: PLC0415 - as above

    nights = made.year(40)
    folder = tmp_path_factory.mktemp("site")
    site_writing.write_site(folder, nights, trend.build_trends(nights), lambda _: None)
    return folder


def violations(browser: "Browser", address: str, axe: str, scheme: Scheme) -> list[tuple[str, Sequence[str]]]:
    """Return every rule of axe that a page breaks, with the elements that break it; what is folded is opened."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page.goto(address)
    if page.locator("#shown").count():
        page.wait_for_selector("#shown:not(:empty)", state="attached")
    page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    page.close()
    assert found["passes"], "axe judged nothing"
    return [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found["violations"]]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["one", "five"])
def test_reports(browser: "Browser", samples_folder: Path, axe: str, name: str, scheme: Scheme) -> None:
    """Charts, cards and tables as they are when the script has run: one run, and five steps."""
    assert violations(browser, (samples_folder / f"{name}.html").as_uri(), axe, scheme) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nights(browser: "Browser", site_folder: Path, axe: str, scheme: Scheme) -> None:
    """The index of the nights, and the page of each figure that it leads to."""
    pages = [site_folder / "index.html", *sorted(site_folder.glob("figures/*.html"))[:3]]
    assert len(pages) == 4
    assert {page.name: found for page in pages if (found := violations(browser, page.as_uri(), axe, scheme))} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_on_many_runs(browser: "Browser", fleet_file: Path, axe: str, scheme: Scheme) -> None:
    """Bars in tables, columns of weeks, and every fold."""
    assert violations(browser, fleet_file.as_uri(), axe, scheme) == []
