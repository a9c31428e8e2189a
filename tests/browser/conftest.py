"""A headless browser that may load nothing but the report."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


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
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of two steps with findings, a gap in the log and a long name."""
    from gpureport.report import build, write  # noqa: PLC0415 - only when a browser is there
    from tests.report import examples  # noqa: PLC0415 - as above

    gaps = tuple(examples.idle_gap(f"gpu:{gpu}", at, at + 20) for gpu in (0, 1) for at in (100, 200, 300))
    name = "a_run_with_a_name_that_is_much_longer_than_any_column_of_a_telephone_can_hold"
    runs = [
        examples.pair(examples.with_gap(examples.run(name)), (*gaps, examples.throttling("gpu:1", 400, 500))),
        examples.pair(examples.run("<b>second</b>"), gaps[:2], examples.NOT_JUDGED),
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(build(runs, title=None, command="gpureport report a b", gpu_hour_price=None, version="0.1.0"), path)
    return path


@pytest.fixture(scope="session")
def steps_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of three steps with all figures a table can have, one name long."""
    from gpureport.report import build, write  # noqa: PLC0415 - as above
    from gpureport.testing import Work  # noqa: PLC0415 - only when a browser is there
    from tests.report import examples  # noqa: PLC0415 - as above

    work = Work(amount=1000, unit="samples")
    names = ("baseline", "mixed_precision_and_channels_last", "8 workers")
    runs = [
        examples.pair(examples.run(f"{name} {run}", step=name, work=work), (examples.idle_gap("gpu:0", 100, 160),))
        for name in names
        for run in range(3)
    ]
    path = tmp_path_factory.mktemp("steps") / "steps.html"
    write(build(runs, title=None, command="gpureport report a b", gpu_hour_price=None, version="0.1.0"), path)
    return path


@pytest.fixture(scope="session")
def fleet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page on a hundred jobs of many users, two sick GPUs among theirs."""
    from gpureport.cli import main  # noqa: PLC0415 - only when a browser is there
    from tests.fleet.generated_fleet import generate_fleet  # noqa: PLC0415 - as above

    folder = tmp_path_factory.mktemp("fleet")
    generate_fleet(folder / "jobs", 100)
    written = ("-o", str(folder / "fleet.html"), "--gpu-hour-price", "2 USD")
    with pytest.raises(SystemExit) as ended:
        main(["-q", "fleet", str(folder / "jobs"), "--store", str(folder / "store"), *written])
    assert not ended.value.code
    return folder / "fleet.html"
