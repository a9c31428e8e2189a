"""Removes the quotes around cells, as spreadsheets, PowerShell's Export-Csv and R write them.

A row of which a quoted cell holds the delimiter, or a quote, keeps them: it is no row then, and is rejected.
"""

import re
from collections.abc import Iterator

from gpureport.importers.decoding.raw_file import Account

_HELD = 64 * 1024
"""A line longer than this is no row."""


def _row(delimiter: bytes) -> bytes:
    # nothing is to be tried another way: a place to go back to at each cell takes more memory than the line;
    # behind a last cell that fails, Python before 3.11.5 goes on after its delimiter (gh-106052)
    quoted, bare = rb'"[^"\n%b]*+"' % delimiter, rb'[^"\n%b]++' % delimiter
    return rb"^%b(?:%b(?:%b|%b))++(?<!%b)\r?$" % (quoted, delimiter, quoted, bare, delimiter)


_ROW = re.compile(b"|".join(map(_row, (b",", b";", b"\t"))), re.MULTILINE)
"""A row whose first cell is quoted; each other cell is quoted too or holds no quote."""


_MULTILINE_CELL = re.compile(
    # the branch that fails last must take nothing, as Python before 3.11.5 goes on where it failed (gh-106052)
    rb'^(?P<before>(?:"[^"\n]*+"|[^"\n]++)*+)(?:(?<=[,;\t])|(?<=[,;\t] )|(?<![^\n]))'
    rb'"(?P<cell>[^"\n]*+(?:\n[^"\n]{0,200}+){1,8}?)"(?P<after>[ \r]*+(?:[,;\t][^\n]*+)?)$',
    re.MULTILINE,
)
"""A line whose last cell opens a quote that a later line closes."""


def join_rows(lines: bytes, account: Account) -> bytes:
    """Return whole lines with each row on one, of which a quoted cell holds newlines: these are blanks then.

    The lines that a row took are empty behind it, so that lines keep their numbers. The account counts the rows.
    """
    if b'"' not in lines:
        return lines
    found, rows = _MULTILINE_CELL.subn(_on_one_line, lines)
    account.joined_rows += rows
    return found


def _on_one_line(match: re.Match[bytes]) -> bytes:
    before, cell, after = match["before"], match["cell"], match["after"]
    whole = re.sub(rb"\s*\n\s*", b" ", cell)
    plain = whole if not re.search(rb"[,;\t]", whole) else b'"%b"' % whole
    row = before + plain + after
    quoted = before + b'"%b"' % whole + after
    row = quoted.replace(b'"', b"") if _ROW.fullmatch(quoted) else row
    return row + b"\n" * cell.count(b"\n")


def unquoted(blocks: Iterator[bytes], *, inside_line: bool = False) -> Iterator[bytes]:
    """Yield text in which the cells of quoted rows stand without their quotes.

    Args:
        blocks: text whose lines end with LF.
        inside_line: whether the first block goes on with a line.
    """
    held, opened = b"", inside_line
    for each in blocks:
        # one letter is found 60 times as fast as two (measured: 14 and 930 us a MiB); most logs have no quote
        begins = b'"' in each and (b'\n"' in each or (not opened and each.startswith(b'"')))
        if not held and not begins:
            opened = not each.endswith(b"\n")
            yield each
            continue
        block = held + each
        start = block.find(b"\n") + 1 if opened else 0
        if opened and not start:
            yield block
            continue
        end = max(block.rfind(b"\n") + 1, start)
        held = block[end:] if block[end : end + 1] == b'"' and len(block) - end <= _HELD else b""
        opened = not held and end < len(block)
        yield block[:start] + _without(block[start:end]) + (b"" if held else block[end:])
    if held:
        yield _without(held)


def _without(lines: bytes) -> bytes:
    return _ROW.sub(lambda match: match[0].replace(b'"', b""), lines)
