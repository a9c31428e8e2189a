"""Removes what identifies people and machines: hosts, users, paths, addresses, serial numbers of GPUs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import ClockStep, LogGap, Quality
from gpureport.importers.labels import shorten_node
from gpureport.recording import Device, Recording, Run, Source, Stage
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
    return [_hide_in_recording(recording, names) for recording, names in named]


def _hide_in_recording(recording: Recording, names: "_Pseudonyms") -> Recording:
    series = recording.series
    place = series.schema.get_field_index("device")
    devices = _devices(series.column("device"), names)
    return Recording(
        run=names.run(recording.run),
        series=series.set_column(place, series.schema.field(place), devices),
        training=_anonymise_training(recording.training, names),
    )


def _devices(column: Any, names: "_Pseudonyms") -> Any:
    chunks = []
    for chunk in column.chunks:
        texts = [names.device(text) for text in chunk.dictionary.to_pylist()]
        chunks.append(columns.categories(columns.integers(chunk.indices), texts))
    return pa.chunked_array(chunks)


def _anonymise_training(training: "pa.Table", names: "_Pseudonyms") -> "pa.Table":
    place = training.schema.get_field_index("name")
    column: Any = training.column(place)
    shown: dict[str, str] = {}
    chunks = []
    for chunk in column.chunks:
        for text in chunk.dictionary.to_pylist():
            if text not in shown:
                shown[text] = names.metric(text)
        texts = [shown[text] for text in chunk.dictionary.to_pylist()]
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, columns.strings_to_arrow(texts)))
    return training.set_column(place, training.schema.field(place), pa.chunked_array(chunks)) if chunks else training


def _list_metrics(training: "pa.Table") -> list[str]:
    column: Any = training.column("name")
    return list(dict.fromkeys(text for chunk in column.chunks for text in chunk.dictionary.to_pylist()))


class _SharedNames:
    """Names of people and machines that the runs of an output mention, and what is shown instead of what."""

    def __init__(self) -> None:
        self.hosts = HostNumbers()
        self.texts: dict[str, str] = {}
        self.distinct = DistinctTexts()

    def learn(self, run: Run) -> None:
        """Note the names of a run."""
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
        self._shared = shared
        self._sources = {each.locator: _source_name(each, place) for place, each in enumerate(run.sources, 1)}
        files = {PurePath(locator).name: name for locator, name in self._sources.items() if "#" not in locator}
        named = dict.fromkeys(list_own_names(run), f"run-{run.id[:_SHOWN]}")
        self._texts = {**shared.texts, **files, **self._sources, **named}
        longest_first = sorted(filter(None, self._texts), key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first)) or r"(?!)"
        self._any = re.compile(rf"(?<![\w{_MARK}])(?:{names})(?!\w)")

    def text(self, text: str) -> str:
        """Return a text without names."""
        # a host is marked, as its pseudonym may be the name of another
        text = hide_addresses(text, lambda host: f"<{_MARK}{self._shared.hosts.hide(host)}>")
        text = _PATH.sub("<path>", text)
        text = self._any.sub(lambda found: self._texts[found.group()], text)
        return _MARKED.sub(r"\1", text)

    def metric(self, name: str) -> str:
        """Return the name of a training metric without names of people and machines."""
        return self._shared.distinct.tell_apart("metric", name, self.text(name))

    def keep_plain_texts(self, recording: Recording) -> None:
        """Note the texts that hold no name and stay, so that no hidden one is shown like them."""
        run = recording.run
        texts = [("step", run.step, self.text(run.step))] if run.step else []
        texts += [("metric", name, self.text(name)) for name in _list_metrics(recording.training)]
        for what, pairs in (("param", run.params), ("tag", run.tags)):
            texts += [(named, value, hidden) for _, named, value, hidden in self._hide_values(what, pairs)]
        for what, text, hidden in texts:
            if text == hidden:
                self._shared.distinct.keep(what, text)

    def device(self, device: str) -> str:
        """Return the id of a device without the name of its node."""
        node, slash, local = device.rpartition("/")
        return f"{self._node(node)}{slash}{local}" if node else device

    def _node(self, node: str) -> str:
        return self._shared.hosts.hide(node)

    def run(self, run: Run) -> Run:
        """Return what is known about a run without names."""
        return replace(
            run,
            name=self.text(run.name),
            step=run.step and self._shared.distinct.tell_apart("step", run.step, self.text(run.step)),
            sources=tuple(replace(each, locator=self._sources[each.locator]) for each in run.sources),
            devices=tuple(map(self._device, run.devices)),
            stages=tuple(map(self._stage, run.stages)),
            params=tuple(self._pairs("param", run.params)),
            tags=tuple(self._pairs("tag", run.tags)),
            quality=self._quality(run.quality),
        )

    def _device(self, device: Device) -> Device:
        uuid = device.uuid and f"GPU-{_short_hash(device.uuid)}"
        node = device.node and self._node(device.node)
        return replace(device, id=self.device(device.id), node=node, uuid=uuid, serial=_short_hash(device.serial))

    def _stage(self, stage: Stage) -> Stage:
        return replace(stage, name=self.text(stage.name), node=stage.node and self._node(stage.node))

    def _pairs(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, named, value, hidden in self._hide_values(what, pairs):
            # a param that is one word is a setting, whoever has the same name
            shown = key if _SINGLE_WORD.fullmatch(key) else self.text(key)
            machines = dict.fromkeys(map(self._node, list_machines(value))) if names_machine(key, value) else ()
            yield shown, ", ".join(machines) or self._shared.distinct.tell_apart(named, value, hidden)

    def _hide_values(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
        """Yield each key, which texts its value is told apart from, the value, and what is shown instead of it."""
        for key, value in pairs:
            hides_all = is_personal(key) or names_machine(key, value)
            yield key, f"{what} {key}", value, _NAME if hides_all else self.text(value)

    def _quality(self, quality: Quality) -> Quality:
        def gap(each: LogGap) -> LogGap:
            return replace(each, device=self.device(each.device))

        def step(each: ClockStep) -> ClockStep:
            return replace(each, device=self.device(each.device))

        return replace(
            quality,
            gaps=tuple(map(gap, quality.gaps)),
            clock_steps=tuple(map(step, quality.clock_steps)),
            log_events=tuple(
                replace(
                    each,
                    device=each.device and self.device(each.device),
                    text=self.text(_anonymise_kernel_message(each.text)),
                )
                for each in quality.log_events
            ),
            notes=tuple(map(self.text, quality.notes)),
            # a line may name anything
            rejected=tuple(replace(each, examples=()) for each in quality.rejected),
        )


def _short_hash(identity: str | None) -> str | None:
    return identity and sha256(identity.encode()).hexdigest()[:_SHOWN]


def _anonymise_kernel_message(text: str) -> str:
    """Return a message without the host and the process that a line of the kernel's log names."""
    for shape, instead in _KERNEL if "NVRM: Xid (" in text else ():
        text = shape.sub(instead, text)
    return text


def _source_name(source: Source, place: int) -> str:
    if "#" in source.locator:
        return f"{source.kind}:store#{source.locator.rpartition('#')[2]}"
    ends = [end for end in PurePath(source.locator).suffixes[-2:] if _ENDS.fullmatch(end)]
    return f"source-{place}{''.join(ends)}"
