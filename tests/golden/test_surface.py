"""What users can write and read: commands, options, settings, keys of JSON, exit codes, one a line of `surface.txt`.

`--update-golden` accepts a change; the commit says why. A line that goes is a promise that goes.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.logs import SAMPLES
from tests.support.program import Program
from tests.support.tables import read_table, words_of

EXPECTED = Path(__file__).with_name("surface.txt")
OPEN = {"absent_cells", "advice", "gpu_time_causes", "params", "reasons", "sample_means", "tags"}
"""Keys whose own keys are data."""
DEVICE = re.compile(r"gpu:\d+|host")


def list_commands(gpureport: Program, *command: str) -> Iterator[str]:
    """Yield a command, its arguments and options, and those of its own commands."""
    text, name = gpureport(*command, "--help-all").out, " ".join(command)
    # earlier versions of click double the brackets, and write COMMAND without them
    usage = text.split("\n\n")[0].replace("[[", "[").replace("]]", "]").split("gpureport")[1].split()[len(command) :]
    words = [word for word in usage if word.strip("[]") not in {"OPTIONS", "COMMAND", "ARGS]..."}]
    yield f"command {name} {' '.join(words)}"
    for option in re.findall(r"^  ((?:-\w, )?--[\w-]+(?: \S+)*)", text.partition("Options:\n")[2], re.MULTILINE):
        yield f"option {name} {option}"
    for line in text.partition("Commands:\n")[2].partition("\n\n")[0].splitlines():
        if found := re.match(r"  ([a-z]+) ", line):
            yield from list_commands(gpureport, *command, found[1])


def ask(gpureport: Program, settings: Path, text: str) -> str:
    settings.write_text(text, encoding="utf-8")
    words = ("check", "logs/short.csv.gz", "--fail-on", "idle_ratio <= 90%", "--config", settings.name)
    return gpureport(*words).err.strip()


def list_known(gpureport: Program, settings: Path, heading: str) -> list[str]:
    """Return what an error says could be written below a heading; of a rule what is no fixed threshold."""
    listed = re.split("known (?:keys |sections )?are", ask(gpureport, settings, f"{heading}\nnothing = 1\n"))[-1]
    known = sorted(listed.strip().split(", ")) if listed.strip() else []
    if heading.startswith("[rules."):
        every = "".join(f"{key} = 1\n" for key in known)
        settable = re.search(r"Its settings are (.+)\.", ask(gpureport, settings, f"{heading}\n{every}"))
        return sorted(settable[1].split(", ")) if settable else known
    return known


def list_settings(gpureport: Program, settings: Path) -> Iterator[str]:
    headings = {"acknowledge": "[[acknowledge]]", "policy": "[[policy]]"}
    rates = "[prices]\ncurrency = 'EUR'\ndate = 2026-01-01\n[[prices.rate]]"
    for section in list_known(gpureport, settings, "[nothing]"):
        for key in list_known(gpureport, settings, headings.get(section, f"[{section}]")):
            if key == "rate" or section == "rules":
                inner = rates if key == "rate" else f"[rules.{key}]"
                yield from (f"setting {section}.{key}.{name}" for name in list_known(gpureport, settings, inner))
            else:
                yield f"setting {section}.{key}"


def list_keys(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        is_open = path.rpartition(".")[2] in OPEN
        for key, inner in value.items():
            where = f"{path}.{'*' if is_open or DEVICE.fullmatch(key) else key}"
            if isinstance(inner, dict) and "sample_mean" in inner and key != "gpu_utilization_ratio":
                inner = {}  # noqa: PLW2901 - every metric holds the same
            yield where
            yield from list_keys(inner, where)
    elif isinstance(value, list):
        for inner in value:
            yield from list_keys(inner, f"{path}[]")


def test_what_users_can_write_and_read(gpureport: Program, place: Path, *, update_golden: bool) -> None:
    found = {*list_settings(gpureport, place / "asked.toml"), *list_commands(gpureport)}
    for document, command in read_table(Path(__file__).with_name("documents.tsv")):
        words = words_of(command, samples=str(SAMPLES))
        written = json.loads(gpureport(*words, "--format", "json").out)
        found |= {f"key {path}" for path in list_keys(written, document)}
    codes = " ".join(gpureport("--help").out.partition("Exit codes:")[2].partition("Options:")[0].split())
    found |= {f"exit {code}" for code in re.findall(r"(?:^|; )(\d) ", codes)}
    text = "".join(f"{line.rstrip()}\n" for line in sorted(found))
    if update_golden:
        EXPECTED.write_text(text, encoding="utf-8")
    lines = text.splitlines(), EXPECTED.read_text(encoding="utf-8").splitlines()
    assert lines[0] == lines[1], f"new: {set(lines[0]) - set(lines[1])}, gone: {set(lines[1]) - set(lines[0])}"
