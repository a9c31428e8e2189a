"""What users read of findings is plain English: no words of the program, no names of metrics, no signs for logic."""

import re

import pytest

from gpureport.report.wording import terms
from tests.report.print_words import FORBIDDEN, list_sample_sentences, list_words
from tests.samples.analysed import FOLDERS, analyzed

_MOST_WORDS = 32
"""Words of a summary: a sentence of some 20, and a short remark; a figure with its units counts as one."""
_FIGURE = re.compile(r"\d[\d.,]*(?:%|\s(?:ms|s|min|h|GiB|MiB|MHz|W|°C)(?!\w)(?:\s\d+\s(?:s|min))?)?")
_OF_USERS = ("val_loss", "precision=")
"""Names that the logs of the samples bring along."""
_PROGRAM_WORDS = re.compile(
    r"\b(kinds?|devices?|episodes?|comparability|replicates?|settled|judged?|told|tells?)\b|[≥≤∈]"
)
"""What advice may not say; it may name options and commands of other programs, which `FORBIDDEN` would find."""


def _clean(text: str) -> str:
    for name in _OF_USERS:
        text = text.replace(name, "")
    return text


@pytest.mark.parametrize("folder", FOLDERS)
def test_summaries_are_plain_sentences(folder: str) -> None:
    """Each ends with a full stop, and is short enough to be read in one breath."""
    for finding in analyzed(folder)["findings"]:
        summary = finding["summary"]
        assert FORBIDDEN.search(_clean(summary)) is None, summary
        assert summary.endswith(".")
        assert len(_FIGURE.sub("0", summary).split()) <= _MOST_WORDS, summary


def test_titles_and_classes_are_plain() -> None:
    """They are a few words with a capital first letter, and no two kinds share one."""
    titles = [*terms.KINDS.values(), *terms.CAUSES.values()]
    assert [
        title for title in (*titles, *terms.CLASSES.values()) if FORBIDDEN.search(title) or title.endswith(".")
    ] == []
    assert all(title[0].isupper() and len(title.split()) <= 7 for title in titles)
    assert len(set(terms.KINDS.values())) == len(terms.KINDS)


def test_every_kind_of_the_samples_has_a_sentence() -> None:
    """The list that is compared with the design holds every kind, each with a sentence of the samples."""
    lines = list(list_words())
    assert {kind for _, kind, _ in list_sample_sentences()} == set(terms.KINDS)
    assert sum(line.startswith("kind | ") for line in lines) == len(terms.KINDS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_advice_and_reasons_are_plain(folder: str) -> None:
    """Recommendations, and why a check was not assessed, hold none of the words of the program."""
    analysis = analyzed(folder)
    texts = [
        *(finding["recommendation"] for finding in analysis["findings"]),
        *(entry["reason"] for entry in analysis["not_judged"]),
    ]
    assert [text for text in texts if _PROGRAM_WORDS.search(text)] == []
