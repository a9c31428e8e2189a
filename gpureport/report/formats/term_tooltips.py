"""Terms explained where they stand: their meaning as the title of an element, for who rests the pointer on it."""

import re
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from gpureport.report.model.shapes import Fact


def meaning_filter(definitions: Sequence[Fact]) -> Callable[[str], str]:
    """Return the filter that gives the meaning of a term by its name, or of a title that begins with it; else empty."""
    texts = {fact.name.lower(): fact.text for fact in definitions}

    def explained(title: str) -> str:
        name = title.lower()
        while name and name not in texts:
            name = name.rpartition(", ")[0]
        return texts.get(name, "")

    return explained


def term_filter(definitions: Sequence[Fact]) -> Callable[[str], Markup]:
    """Return the filter that explains the first term in words of ours, the longest where one holds another.

    Whatever the words are, they are escaped.
    """
    texts = meaning_filter(definitions)
    names = sorted((fact.name for fact in definitions), key=len, reverse=True)
    pattern = re.compile("|".join(map(_pattern, names)) or "(?!)", re.IGNORECASE)
    full = {fact.name.lower().removeprefix("gpu "): fact.name for fact in definitions}

    def explained(text: str) -> Markup:
        found = pattern.search(text)
        if found is None:
            return escape(text)
        name = found.group().lower().removeprefix("gpu ")
        said = texts(full.get(name) or full[name.removesuffix("s")])
        shown = Markup('<abbr title="{}">{}</abbr>').format(said, found.group())
        return escape(text[: found.start()]) + shown + escape(text[found.end() :])

    return explained


def _pattern(name: str) -> str:
    """Return what finds a term as a word or as several, in the plural too, and without the GPU it is of."""
    prefix, word = ("(?:GPU )?", name[4:]) if name.startswith("GPU ") else ("", name)
    return rf"(?<![\w-]){prefix}{re.escape(word)}s?(?![\w-])"
