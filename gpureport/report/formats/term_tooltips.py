"""Tooltips: the meaning of a term as the title of an element, shown on hover."""

import re
from collections.abc import Callable, Sequence

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from gpureport.report.model.shapes import Fact


def meaning_filter(definitions: Sequence[Fact]) -> Callable[[Context, str], str]:
    """Return the filter that gives the meaning of a term, or of a title that begins with one; empty for others."""
    texts = {fact.name.lower(): fact.text for fact in definitions}

    @pass_context  # so that no template is compiled with the terms of one page
    def explained(_context: Context, title: str) -> str:
        name = title.lower()
        while name and name not in texts:
            name = name.rpartition(", ")[0]
        return texts.get(name, "")

    return explained


def term_filter(definitions: Sequence[Fact]) -> Callable[[Context, str], Markup]:
    """Return the filter that adds a tooltip to the first term of a text; of overlapping terms to the longest.

    The text is escaped.
    """
    texts = meaning_filter(definitions)
    names = sorted((fact.name for fact in definitions), key=len, reverse=True)
    pattern = re.compile("|".join(map(_pattern, names)) or "(?!)", re.IGNORECASE)
    full = {fact.name.lower().removeprefix("gpu "): fact.name for fact in definitions}

    @pass_context
    def explained(context: Context, text: str) -> Markup:
        found = pattern.search(text)
        if found is None:
            return escape(text)
        name = found.group().lower().removeprefix("gpu ")
        said = texts(context, full.get(name) or full[name.removesuffix("s")])
        shown = Markup('<abbr title="{}">{}</abbr>').format(said, found.group())
        return escape(text[: found.start()]) + shown + escape(text[found.end() :])

    return explained


def _pattern(name: str) -> str:
    """Return the pattern of a term: singular or plural, with or without a leading `GPU`."""
    prefix, word = ("(?:GPU )?", name[4:]) if name.startswith("GPU ") else ("", name)
    return rf"(?<![\w-]){prefix}{re.escape(word)}s?(?![\w-])"
