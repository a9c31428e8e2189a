"""Results as a notebook shows them: the headline, where the GPU time went, and the findings."""

from gpureport.report.charts.palette import CLASSES, OTHER_CLASS, SEVERITY
from gpureport.report.formats.html import template_environment
from gpureport.report.model.report_content import Report
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display

_SHOWN = 8
"""Most findings that are shown; the rest are counted."""


def view(report: Report) -> str:
    """Return a report's headline, bars and findings as an HTML fragment without script or style sheet.

    Text takes the colour of the page around it, light or dark.
    """
    bars = [bar for bar in report.gpu_time if bar.whole]
    cards = [card for card in report.findings if not card.repeats]
    legend = gpu_time.class_labels(bars)
    headline, _ = display.headline(report.verdict.sentence)
    return (
        template_environment()
        .get_template("notebook.html")
        .render(
            report=report,
            headline=headline,
            bars=bars,
            legend=legend,
            fills={key: CLASSES.get(key, OTHER_CLASS) for key in legend},
            cards=cards[:_SHOWN],
            more=len(cards) - len(cards[:_SHOWN]),
            severities=SEVERITY,
        )
    )
