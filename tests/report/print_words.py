"""Print every title, class and verdict, and every sentence of findings in the sample logs.

Run as `python -m tests.report.print_words`.
"""

import re
import sys
from collections.abc import Iterator

from gpureport.report.wording import terms
from gpureport.testing import Verdict
from tests.samples.analysed import FOLDERS, analyzed

FORBIDDEN = re.compile(
    r"\b(kinds?|devices?|episodes?|famil(y|ies)|comparability|replicates?|settled|held|judged|told)\b"
    r"|[a-z0-9]+_[a-z0-9_]+|[≥≤∈<>]|\s{2}|\((at least|at most|above|below)\b",
)
"""Words that no sentence may hold: those of the program, names of metrics, signs for logic, limits in brackets."""


def list_sample_sentences() -> Iterator[tuple[str, str, str]]:
    """Yield sample, kind and summary of every finding of the sample logs."""
    for folder in FOLDERS:
        for finding in analyzed(folder)["findings"]:
            yield folder, finding["kind"], finding["summary"]


def list_words() -> Iterator[str]:
    """Yield a line for each class, verdict, and kind, with its sentences in the sample logs below it."""
    yield from (f"class | {key} | {title}" for key, title in terms.CLASSES.items())
    yield from (f"verdict | {verdict.name.lower()} | {verdict.value}" for verdict in Verdict)
    sentences = list(list_sample_sentences())
    for kind, title in terms.KINDS.items():
        yield f"kind | {kind} | {title}"
        seen = dict.fromkeys((folder, text) for folder, each, text in sentences if each == kind)
        yield from (f"  {folder} | {text}" for folder, text in seen)


if __name__ == "__main__":
    sys.stdout.write("\n".join([*list_words(), ""]))
