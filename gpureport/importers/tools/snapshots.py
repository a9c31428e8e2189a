"""Reads JSON in which a tool says what every GPU does at a moment: documents one after the other, or one a line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import parse_time
from gpureport.importers.protocol.reject_reasons import CUT_DOCUMENT, NOT_JSON
from gpureport.importers.quantities import parse_number
from gpureport.importers.tools import Meaning, Record, form, parse_documents, say_when, take_cells, text_lines

_MOST = 2**24
"""Characters of a document; one of 16 GPUs with a thousand processes has a tenth."""
_FAILED = re.compile(r"\(\((.+)\)\)")
"""Replaces the name of a GPU that could not be queried, and says why."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_MACHINES = "write one file a machine, and read them with --as-one-run"


class Snapshots(NamedTuple):
    """How a tool writes its documents.

    Attributes:
        gpus: key of the list of GPUs; empty where the document is that list, and their place in it is their index.
        time: key of the time; empty where there is none.
        meanings: what the keys of a GPU hold.
        host: key of the machine's name, of a document or of a GPU.
        not_kept: keys of a GPU that are left out.
    """

    gpus: str
    time: str
    meanings: dict[str, Meaning]
    host: str = ""
    not_kept: frozenset[str] = frozenset({"processes", "index"})


@form
def read_snapshots(lines: Iterable[str], first: int, account: Account, shape: Snapshots) -> Iterator[Record]:
    """Yield the rows of documents, pretty-printed or one a line.

    Raises:
        SourceError: when one number is that of GPUs of several machines, and nothing tells them apart.
    """
    hosts: dict[str, str] = {}
    account.snapshot = not shape.time
    for held in _documents(lines, first, account):
        contents: list[Any] = parse_documents("\n".join(text for _, text in held)) or [None]
        if shape.gpus:
            contents = [each for content in contents for each in (content if isinstance(content, list) else [content])]
        else:
            contents = [{"": content} for content in contents]
        if not all(_is_whole(content, shape) for content in contents):
            _reject(held, NOT_JSON, account)
            continue
        gpus = [(each, place, gpu) for each in contents for place, gpu in enumerate(each.get(shape.gpus) or ())]
        account.noise += 0 if gpus else len(held)
        account.continued += max(len(held) - len(gpus), 0) if gpus else 0
        for content, place, gpu in gpus:
            record = _read(gpu, shape, account) | ({} if shape.gpus else {"index": str(place)})
            driver, host = content.get("driver_version"), gpu.get(shape.host, content.get(shape.host))
            record |= {"driver": driver} if isinstance(driver, str) else {}
            index = record.get("index", "")
            unnamed = isinstance(host, str) and "uuid" not in record and "model" in record
            if unnamed and hosts.setdefault(index, host) != host:
                what = f"GPUs of several machines ({hosts[index]}, {host}) in one log without uuid"
                raise SourceError("the log", what, _MACHINES, code="several_machines")
            when = parse_time(str(content.get(shape.time)))
            yield {"line": held[0][0], **say_when(when), **record}


def _documents(lines: Iterable[str], first: int, account: Account) -> Iterator[Sequence[tuple[int, str]]]:
    """Yield the lines of each document, which ends where its brackets close; one that is cut is rejected."""
    held: list[tuple[int, str]] = []
    depth = size = 0
    for number, text, _ in text_lines(lines, first, account):
        begins = text.startswith(("{", "["))
        if held and begins and held[0][1][0] == text[0]:
            _reject(held, CUT_DOCUMENT, account)
            held, depth, size = [], 0, 0
        if not held and not text.lstrip().startswith(("{", "[")):
            account.reject(NOT_JSON, number, text)
            continue
        held.append((number, text))
        bare = _STRING.sub("", text)
        depth += sum(bare.count(bracket) for bracket in "{[") - sum(bare.count(bracket) for bracket in "}]")
        size += len(text)
        if depth <= 0 or size > _MOST:
            if size <= _MOST:
                yield held
            else:
                _reject(held, NOT_JSON, account)
            held, depth, size = [], 0, 0
    _reject(held, CUT_DOCUMENT, account)


def _reject(held: Sequence[tuple[int, str]], reason: str, account: Account) -> None:
    for number, text in held:
        account.reject(reason, number, text)


def _is_whole(content: object, shape: Snapshots) -> bool:
    """Return whether a document lists GPUs; the frames of all-smi that say how it records have a schema instead."""
    gpus = content.get(shape.gpus, [] if "schema" in content else None) if isinstance(content, dict) else None
    return isinstance(gpus, list) and all(isinstance(gpu, dict) for gpu in gpus)


def _read(gpu: dict[str, Any], shape: Snapshots, account: Account) -> Record:
    """Return what a document says of a GPU."""
    failed = next(
        (found for each in gpu.values() if isinstance(each, str) and (found := _FAILED.fullmatch(each))), None
    )
    record: Record = {}
    take_cells(record, account, ((key, cell) for key, cell in gpu.items() if key not in shape.not_kept), shape.meanings)
    index = parse_number(gpu.get("index"))
    if index is not None and index.is_integer() and 0 <= index < 2**14:
        record["index"] = str(int(index))
    if gpu.get("processes"):
        account.note("What the log says of processes is not kept.")
    if failed:
        record.pop("uuid", None)
        record.pop("model", None)
        account.absent["utilization.gpu", failed[1]] += 1
    return record
