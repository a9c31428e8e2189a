"""The `meta.yaml` of MLflow's file store: one flat mapping of names to plain values, no more of YAML than that."""

import re

_ENTRY = re.compile(r"^(?P<key>[A-Za-z_][\w.-]*):(?:[ \t]+(?P<value>.*))?$")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(\n *)|(.))", re.DOTALL)
_SURROGATES, _LAST = range(0xD800, 0xE000), 0x10FFFF
_BLANKS = " \t\n"
_NULLS = {"", "~", "null", "Null", "NULL"}


def parse_meta(text: str) -> dict[str, str | None]:
    """Return the values of a file by name; what is more than text, such as a list, as it is written.

    A long text goes on in lines that are indented; each break between two of them stands for a blank, an empty line
    for a break.
    """
    entries: dict[str, list[str]] = {}
    key = ""
    for line in text.split("\n"):
        match = _ENTRY.match(line)
        if match:
            key = match["key"]
            entries[key] = [match["value"] or ""]
        elif line.strip(_BLANKS) and line[0] not in " \t":
            key = ""
        elif key:
            entries[key].append(line.strip(" \t"))
    return {key: _parse_value(lines) for key, lines in entries.items()}


def _parse_value(lines: list[str]) -> str | None:
    while len(lines) > 1 and not lines[-1]:
        lines = lines[:-1]
    if lines[0][:1] == '"':
        return _unescape("\n".join(lines).strip(_BLANKS)[1:-1])
    text = _fold_lines(lines).strip(_BLANKS)
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    return None if text in _NULLS else text


def _fold_lines(lines: list[str]) -> str:
    text, breaks = lines[0], 0
    for line in lines[1:]:
        if not line:
            breaks += 1
            continue
        text += ("\n" * breaks or " ") + line
        breaks = 0
    return text


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            number = int(code, 16)
            # a half of a pair, and what Unicode does not have, cannot be written down
            return chr(number) if number < _SURROGATES[0] or _SURROGATES[-1] < number <= _LAST else "\ufffd"
        return "" if match[4] else _ESCAPES.get(match[5], match[5])

    # a break that is escaped joins two lines as they are, any other one stands for a blank
    parts = re.split(r"(\\\n *)", text)
    folded = "".join("" if part.startswith("\\\n") else _fold_lines(part.split("\n")) for part in parts)
    return _ESCAPE.sub(character, folded)
