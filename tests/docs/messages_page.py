"""docs/reference/messages.md: every error message with what to do about it, and causes that people wrote down."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests.docs.message_texts import Message, list_messages
from tests.docs.usage_errors import format_usage_errors

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "messages.md"
_HEAD = """# Error messages

An error is one line: `gpureport: WHERE: WHAT IS WRONG; WHAT TO DO`. Find yours by a few of its words. In the headings
`…` stands for names and numbers of your case. Nothing is left half written, and the sources are as they were.

The exit code says what kind of error it is: 2 for a command, a setting or a rule that is wrong, 3 for a source or a
store that is missing or cannot be read, 4 for a question that cannot be answered, 5 for a fault of gpureport itself,
whose line begins with `internal error`: please report it with the traceback that `--debug` prints.
"""
_GROUPS = {
    "cli": "Commands and options",
    "api": "Commands and options",
    "errors.py": "Commands and options",
    "settings": "Settings, rules and prices",
    "checks": "Settings, rules and prices",
    "analysis": "Settings, rules and prices",
    "report/explain": "Settings, rules and prices",
    "recorder": "Recording",
    "importers": "Reading logs",
    "importers/labelling": "Labels",
    "importers/logs/dcgm": "DCGM and Prometheus",
    "importers/logs/mapped": "Maps of tables",
    "importers/protocol/column_map.py": "Maps of tables",
    "importers/trackers/read_only_sqlite.py": "MLflow",
    "importers/trackers/mlflow": "MLflow",
    "publishing/mlflow": "MLflow",
    "importers/trackers/neptune": "Neptune",
    "comparison": "Comparing runs",
    "report": "Reports and publishing",
    "publishing": "Reports and publishing",
    "store": "The store",
    "nightly": "Baselines and nights",
    "fleet": "Many runs",
    "places": "Buckets",
}
"""The heading under which the messages of a part of the package stand; the longest beginning of a path counts."""


def messages_page() -> str:
    """Return docs/reference/messages.md, with the causes that it names now."""
    causes = read_causes()
    by_group: dict[str, list[Message]] = {title: [] for title in _GROUPS.values()}
    for message in list_messages():
        by_group[_find_group(message.module)].append(message)
    parts = [_HEAD, format_usage_errors()]
    for title, messages in by_group.items():
        parts.append(f"## {title}\n")
        for heading, hints in _join_hints(messages):
            parts += [f"### {heading}\n", causes.get((title, heading), ""), _format_hints(hints)]
    return "\n".join(part for part in parts if part)


def read_causes() -> dict[tuple[str, str], str]:
    """Return what people wrote above the remedies, by group and heading."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    causes = {}
    for group in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = group.partition("\n")
        for entry in re.split(r"^### ", rest, flags=re.MULTILINE)[1:]:
            heading, _, below = entry.partition("\n")
            cause = re.split(r"^- ", below, maxsplit=1, flags=re.MULTILINE)[0].strip("\n")
            causes[title, heading] = f"{cause}\n" if cause else ""
    return causes


def list_unexplained() -> Iterator[str]:
    """Yield the headings of the page below which nothing says what to do."""
    entries = re.findall(r"^### (.+)\n+(?=#|\Z)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    # the errors of click say it in one sentence
    complete = {_format_heading(message.what) for message in list_messages() if not message.hint}
    yield from (entry for entry in entries if entry not in complete)


def _format_heading(what: str) -> str:
    """Return a message as code, whose own quotes of that form would end it."""
    quoted = what.replace("`", "'")
    return f"`{quoted}`"


def _find_group(module: str) -> str:
    """Return the heading for the messages of a module; a KeyError asks for a line in the table above."""
    fitting = [path for path in _GROUPS if module.startswith(path)]
    return _GROUPS[max(fitting, key=len, default=module)]


def _join_hints(messages: Iterable[Message]) -> Iterator[tuple[str, list[str]]]:
    """Yield each message as a heading, in the order of the alphabet, with the remedies of all places that raise it."""
    texts = {message.what for message in messages}
    named = [
        (m.what.removesuffix(" (…)") if m.what.removesuffix(" (…)") in texts else m.what, m.hint) for m in messages
    ]
    named.sort(key=lambda pair: re.sub(r"\W", "", pair[0]).lower())
    for what, pairs in groupby(named, key=lambda pair: pair[0]):
        yield _format_heading(what), [hint for hint in dict.fromkeys(hint for _, hint in pairs) if hint]


def _format_hints(hints: list[str]) -> str:
    """Return what to do, a line a remedy; empty where only a run of the program knows it."""
    known = [hint for hint in hints if re.search("[A-Za-z]{2}", hint)]
    return "".join(f"- {_as_sentence(hint)}\n" for hint in known)


def _as_sentence(hint: str) -> str:
    """Return a remedy as a sentence, unless it begins with a command or an option."""
    first = hint if hint.startswith(("gpureport ", "pip ")) else hint[0].upper() + hint[1:]
    return re.sub(r"([*_<\[\]])", r"\\\1", first) + ("" if hint.endswith("?") else ".")
