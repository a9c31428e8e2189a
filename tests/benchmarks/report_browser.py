"""What a browser makes of a page: when it shows something, when its charts stand, how long a linked zoom takes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_ZOOMS = 7

READY = {
    "gpureport": "!!document.querySelector('#shown')?.textContent",
    "plotly": "document.querySelectorAll('.scatterlayer .trace').length >= {series}",
    "bokeh": "!!window.Bokeh?.documents?.[0]?.is_idle && !!document.querySelector('.bk-Column')",
    "uplot": "!!window.charts?.length && charts.every(chart => chart.status === 1)",
}
"""When the charts of a page stand: an expression."""

SIGHT = {"gpureport": ".tools", "plotly": ".js-plotly-plot", "bokeh": "body", "uplot": "body"}
"""Where the charts of a page begin: they are scrolled to before they are timed."""

ZOOM = {
    "gpureport": "document.querySelector('.tools [data-by=\"0.5\"]').click()",
    "plotly": "await Plotly.relayout(document.querySelector('.js-plotly-plot'), {'xaxis.range': [from, to]})",
    "bokeh": "Bokeh.documents[0].roots()[0].children[0].x_range.setv({start: from, end: to});"
    " while (!Bokeh.documents[0].is_idle) await new Promise(requestAnimationFrame)",
    "uplot": "charts.forEach(chart => chart.setScale('x', {min: from, max: to}))",
}
"""Shows half of what was shown before, `from` and `to` in seconds, in all charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was measured of one page.

    Attributes:
        paint: milliseconds to the first contentful paint.
        ready: milliseconds until its charts stand.
        zoom: milliseconds of a linked zoom, the median of several.
        script: bytes of script that runs.
        style: bytes of style sheets.
        requests: what it asked for beside itself.
        messages: what it said on the console, and errors.
    """

    paint: float
    ready: float
    zoom: float
    script: int
    style: int
    requests: int
    messages: int


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where pages are measured

    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=list(_FLAGS))
        yield browser
        browser.close()


def seen(browser: "Browser", tool: str, path: Path, *, series: int, seconds: float) -> Seen:
    """Open a page in a fresh profile and measure.

    Args:
        browser: the browser.
        tool: who made the page, a key of READY.
        path: the page.
        series: how many lines it draws.
        seconds: how much time its axis spans.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    told: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(path.as_uri(), wait_until="commit")
    ready = _once(page, f"({READY[tool].format(series=series)}) && performance.now()")
    # charts out of sight are not drawn, so that they would be timed for nothing
    page.evaluate(f"() => document.querySelector({SIGHT[tool]!r}).scrollIntoView()")
    painted = _once(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    seen = Seen(
        paint=painted,
        ready=max(ready, painted),
        zoom=median(_zooms(page, tool, seconds)),
        script=_bytes(page, "script:not([type]), script[type='text/javascript']"),
        style=_bytes(page, "style"),
        requests=len([url for url in asked if not url.startswith(("data:", "blob:"))]) - 1,
        messages=len(told),
    )
    page.close()
    return seen


def _once(page: "Page", expression: str) -> float:
    """Return the first value other than none or false that an expression has; looked at in every frame."""
    return float(
        page.evaluate(
            f"""() => new Promise((done) => {{
                  const look = () => {{
                    const value = {expression};
                    value ? done(value) : requestAnimationFrame(look);
                  }};
                  look();
                }})"""
        )
    )


def _zooms(page: "Page", tool: str, seconds: float) -> Iterator[float]:
    """Yield how long each of several zooms took, until the frame after the one it is painted in."""
    for half in range(1, _ZOOMS + 1):
        size = seconds / 2**half
        yield float(
            page.evaluate(
                f"""async ([from, to]) => {{
                      const frame = () => new Promise(requestAnimationFrame), begin = performance.now();
                      {ZOOM[tool]};
                      await frame();
                      await frame();
                      return performance.now() - begin;
                    }}""",
                [seconds / 2 - size / 2, seconds / 2 + size / 2],
            )
        )


def _bytes(page: "Page", selector: str) -> int:
    script = "selector => [...document.querySelectorAll(selector)].map(node => new Blob([node.textContent]).size)"
    return sum(page.evaluate(script, selector))
