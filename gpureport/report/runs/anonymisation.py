"""Removes what identifies people and machines: hosts, users, paths, addresses, serial numbers of GPUs."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePath
from typing import Any, TypeVar, cast

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import ClockStep, LogEvent, LogGap
from gpureport.importers.labels import shorten_node
from gpureport.recording import Recording, Run, Source
from gpureport.report.runs.network_names import (
    DistinctTexts,
    HostNumbers,
    hide_addresses,
    is_personal,
    list_machines,
    list_mentioned_machines,
    list_own_names,
    list_people,
    names_machine,
)

_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/][^\s\\/:,;\"'<>|]+){2,}[\\/]?")
_SINGLE_WORD = re.compile(r"[A-Za-z_]+")
_KERNEL = (
    # what stands above it in the line is the kernel's stamp and the host, or what a shell on many hosts put there
    (re.compile(r"^.*?(?=NVRM: Xid \()", re.DOTALL), ""),
    (re.compile(r"\bpid='?[^\s,']+'?"), "pid=<process>"),
    (re.compile(r"\bname=[^,]*"), "name=<process>"),
)
"""Patterns of the host and the process in a line of the kernel's log, with their replacements."""
_ENDS = re.compile(r"\.(?:csv|tsv|txt|log|out|err|jsonl?|ndjson|xml|db|gz|zst|bz2|xz)", re.IGNORECASE)
"""File extensions to keep; any other could be part of a host's name."""
_SHORTEST = 3
"""Fewest letters of a name that is replaced everywhere; a shorter one could be part of a word."""
_SHOWN = 8
_NAME = "<name>"
_MARK = "\ufffe"
"""Stands in no text: Unicode keeps it for programs."""
_MARKED = re.compile(rf"<{_MARK}(host-\d+)>")
_Place = TypeVar("_Place", LogGap, ClockStep, LogEvent)


def anonymise_recordings(recordings: Sequence[Recording]) -> list[Recording]:
    """Return all runs of an output with the names of nodes, users, sources and GPUs replaced.

    What stays: times, values, GPU models, bus ids, and the names people gave to runs and steps, unless a host or user
    is part of them. Steps that differ still do, and so do the values of a param or tag.
    """
    shared = _SharedNames()
    for recording in recordings:
        shared.learn(recording.run)
    named = [(recording, _Pseudonyms(recording.run, shared)) for recording in recordings]
    for recording, names in named:
        names.keep_plain_texts(recording)
    return [
        Recording(
            run=names.run(recording.run),
            series=_rename(recording.series, "device", names.device),
            training=_rename(recording.training, "name", names.metric),
        )
        for recording, names in named
    ]


def _rename(table: pa.Table, name: str, rename: Callable[[str], str]) -> pa.Table:
    """Return a table with other texts in a column of categories."""
    place, column = table.schema.get_field_index(name), cast("Any", table.column(name))
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices, columns.strings_to_arrow([rename(text) for text in chunk.dictionary.to_pylist()])
        )
        for chunk in column.chunks
    ]
    return table.set_column(place, table.schema.field(place), pa.chunked_array(chunks)) if chunks else table


class _SharedNames:
    """Names of people and machines that the runs of an output mention, and what is shown instead of what."""

    def __init__(self) -> None:
        self.hosts = HostNumbers()
        self.texts: dict[str, str] = {}
        self.distinct = DistinctTexts()

    def learn(self, run: Run) -> None:
        named = (*(device.node for device in run.devices), *(stage.node for stage in run.stages))
        nodes = [node for node in dict.fromkeys(named) if node]
        for name in dict.fromkeys((*nodes, *list_mentioned_machines(run))):
            for called in (name, name[: len(shorten_node(name))]):
                if called in nodes or len(called) >= _SHORTEST:
                    self.texts[called] = self.hosts.hide(called)
        for name in list_people(run):
            if len(name) >= _SHORTEST:
                self.texts.setdefault(name, _NAME)


class _Pseudonyms:
    def __init__(self, run: Run, shared: _SharedNames) -> None:
        self._hosts, self._distinct = shared.hosts, shared.distinct
        self._sources = {each.locator: _source_name(each, place) for place, each in enumerate(run.sources, 1)}
        files = {PurePath(locator).name: name for locator, name in self._sources.items() if "#" not in locator}
        named = dict.fromkeys(list_own_names(run), f"run-{run.id[:_SHOWN]}")
        self._texts = {**shared.texts, **files, **self._sources, **named}
        longest_first = sorted(filter(None, self._texts), key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first)) or r"(?!)"
        self._any = re.compile(rf"(?<![\w{_MARK}])(?:{names})(?!\w)")

    def text(self, text: str) -> str:
        # a host is marked, as its pseudonym may be the name of another
        text = hide_addresses(text, lambda host: f"<{_MARK}{self._hosts.hide(host)}>")
        text = _PATH.sub("<path>", text)
        text = self._any.sub(lambda found: self._texts[found.group()], text)
        return _MARKED.sub(r"\1", text)

    def metric(self, name: str) -> str:
        return self._distinct.tell_apart("metric", name, self.text(name))

    def keep_plain_texts(self, recording: Recording) -> None:
        """Note the texts that hold no name and stay, so that no hidden one is shown like them."""
        run, training = recording.run, cast("Any", recording.training.column("name"))
        names = [text for chunk in training.chunks for text in chunk.dictionary.to_pylist()]
        texts = [("metric", name, self.text(name)) for name in names]
        texts += [("step", run.step, self.text(run.step))] if run.step else []
        for what, pairs in (("param", run.params), ("tag", run.tags)):
            texts += [(named, value, hidden) for _, named, value, hidden in self._hide_values(what, pairs)]
        for what, text, hidden in texts:
            if text == hidden:
                self._distinct.keep(what, text)

    def device(self, device: str) -> str:
        """Return the id of a device without the name of its node."""
        node, slash, local = device.rpartition("/")
        return f"{self._hosts.hide(node)}{slash}{local}" if node else device

    def _at(self, place: _Place) -> _Place:
        """Return something of a device without the name of its node."""
        return replace(place, device=place.device and self.device(place.device))

    def run(self, run: Run) -> Run:
        quality = run.quality
        return replace(
            run,
            name=self.text(run.name),
            step=run.step and self._distinct.tell_apart("step", run.step, self.text(run.step)),
            sources=tuple(replace(each, locator=self._sources[each.locator]) for each in run.sources),
            devices=tuple(
                replace(
                    each,
                    id=self.device(each.id),
                    node=each.node and self._hosts.hide(each.node),
                    uuid=each.uuid and f"GPU-{_short_hash(each.uuid)}",
                    serial=_short_hash(each.serial),
                )
                for each in run.devices
            ),
            stages=tuple(
                replace(each, name=self.text(each.name), node=each.node and self._hosts.hide(each.node))
                for each in run.stages
            ),
            params=tuple(self._pairs("param", run.params)),
            tags=tuple(self._pairs("tag", run.tags)),
            quality=replace(
                quality,
                gaps=tuple(map(self._at, quality.gaps)),
                clock_steps=tuple(map(self._at, quality.clock_steps)),
                log_events=tuple(
                    replace(self._at(each), text=self.text(_hide_process(each.text))) for each in quality.log_events
                ),
                notes=tuple(map(self.text, quality.notes)),
                # a line may name anything
                rejected=tuple(replace(each, examples=()) for each in quality.rejected),
            ),
        )

    def _pairs(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, named, value, hidden in self._hide_values(what, pairs):
            # a param that is one word is a setting, whoever has the same name
            shown = key if _SINGLE_WORD.fullmatch(key) else self.text(key)
            machines = dict.fromkeys(map(self._hosts.hide, list_machines(value))) if names_machine(key, value) else ()
            yield shown, ", ".join(machines) or self._distinct.tell_apart(named, value, hidden)

    def _hide_values(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
        """Yield each key, which texts its value is told apart from, the value, and what is shown instead of it."""
        for key, value in pairs:
            hides_all = is_personal(key) or names_machine(key, value)
            yield key, f"{what} {key}", value, _NAME if hides_all else self.text(value)


def _short_hash(identity: str | None) -> str | None:
    return identity and sha256(identity.encode()).hexdigest()[:_SHOWN]


def _hide_process(text: str) -> str:
    for shape, instead in _KERNEL if "NVRM: Xid (" in text else ():
        text = shape.sub(instead, text)
    return text


def _source_name(source: Source, place: int) -> str:
    if "#" in source.locator:
        return f"{source.kind}:store#{source.locator.rpartition('#')[2]}"
    ends = [end for end in PurePath(source.locator).suffixes[-2:] if _ENDS.fullmatch(end)]
    return f"source-{place}{''.join(ends)}"
