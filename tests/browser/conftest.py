"""A headless browser that may load nothing but the page, and the pages that it looks at."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpureport
from gpureport.cli.main import main
from gpureport.testing import finding
from tests.fleet.fleet_logs import generate_fleet
from tests.support import runs
from tests.support.hostile import steps_with

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Open = Callable[..., AbstractContextManager[Page]]

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
UNFOLD = "for (const folded of document.querySelectorAll('details')) folded.open = true"


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Start Chromium once, with an empty profile; skip when it is not there."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def open_page(browser: "Browser") -> "Open":
    """Return what opens a page, and fails where it asks for anything else or complains."""

    @contextmanager
    def opened(
        file: Path, width: int = 1280, *, unfolded: bool = False, anchor: str = "", **options: Any
    ) -> Iterator["Page"]:
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        # Chromium advises tests that read canvases, not readers
        page.on("console", lambda said: None if "willReadFrequently" in said.text else complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{file.as_uri()}{anchor}")
        if unfolded:
            page.evaluate(UNFOLD)
            if page.locator("#shown").count():
                page.wait_for_selector("#shown:not(:empty)", state="attached")
        yield page
        page.close()
        assert ({each.partition("#")[0] for each in requests}, complaints) == ({file.as_uri()}, [])

    return opened


def written(name: str, make: Callable[[], Any]) -> Any:
    """Return a fixture: the file of the page of what is made."""

    @pytest.fixture(scope="session", name=f"{name}_file")
    def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
        path = tmp_path_factory.mktemp(name) / f"{name}.html"
        gpureport.report(make(), path)
        return path

    return file


def make_two() -> list[gpureport.Analysis]:
    """Return two runs of ten minutes with findings, a gap in the log and a name that is long."""
    long = "a_run_with_a_name_that_is_much_longer_than_any_column_of_a_telephone_can_hold"
    starts = (100, 200, 300)
    gaps = [
        finding("idle_gap", *((at, at + 20) for at in starts), devices=(f"gpu:{gpu}",), lost=60.0) for gpu in (0, 1)
    ]
    found = (*gaps, finding("thermal_throttle", (400, 500), devices=("gpu:1",), lost=20.0))
    names = (long, "<b>second</b>")
    return [replace(gpureport.analyze(runs.run(name, util=90.0)), findings=found) for name in names]


HOSTILE = "</script></title><script>alert(1)</script><img src=x onerror=alert(1)>"
page_file = written("page", make_two)
steps_file = written("steps", runs.recorded_steps)
# its bars have a label in a short segment
heat_file = written("heat", lambda: runs.sample("thermal_throttle"))
gpus_file = written("gpus", lambda: [runs.run(name, gpus=8, seconds=120) for name in "abcdef"])
hostile_file = written("hostile", lambda: steps_with(HOSTILE))


@pytest.fixture(scope="session")
def fleet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page on a hundred jobs of many users, two sick GPUs among theirs."""
    folder = tmp_path_factory.mktemp("fleet")
    generate_fleet(folder / "jobs", 100)
    written = ("-o", str(folder / "fleet.html"), "--gpu-hour-price", "2 USD")
    call("fleet", str(folder / "jobs"), "--store", str(folder / "store"), *written)
    return folder / "fleet.html"


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of nights, the last of which broke a rule, and one of which had no log."""
    folder = tmp_path_factory.mktemp("nights")
    for night in range(8):
        rows = [
            f"2026/03/{night + 1:02d} 01:{second // 60:02d}:{second % 60:02d}.000, 0, "
            f"{(60 if night > 5 else 90) + (second * 7 + night) % 5} %, 4096 MiB"
            for second in range(240)
        ]
        log = folder / f"{night}.csv"
        if night != 3:
            log.write_text("\n".join(["timestamp, index, utilization.gpu [%], memory.used [MiB]", *rows]))
        places = ("--site", str(folder / "site"), "--store", str(folder / "store"))
        named = ("--step", "bert", "--date", f"2026-03-{night + 1:02d}", "--fail-on", "gpu_utilization_ratio >= 80%")
        call("nightly", str(log), *places, *named, codes=(0, 1, 4))
    return folder / "site"


def call(*arguments: str, codes: tuple[int, ...] = (0,)) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-q", *arguments])
    assert (ended.value.code or 0) in codes
