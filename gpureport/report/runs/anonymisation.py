"""Removes what identifies people and machines: hosts, users, paths, addresses, serial numbers of GPUs."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain, count
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import ClockStep, LogGap, Quality
from gpureport.label_tags import list_personal_tags
from gpureport.recording import Device, Recording, Run, Source, Stage
from gpureport.report.runs.network_names import find_named_machines, hide_addresses, list_machines, names_machine

_PERSONAL_WORDS = ("owner", "author", "host", "hostname", "machine", "email", *list_personal_tags())
_PERSONAL = re.compile(rf"(?:^|[._/-])(?:{'|'.join(_PERSONAL_WORDS)})(?:$|[._/-]|name)", re.IGNORECASE)
"""Keys of params and tags whose values name a person or a machine."""
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
_HOME = re.compile(r"[\\/](?:home|Users|users)[\\/]([^\\/\s]+)")
_SHORTEST = 3
"""Fewest letters of a name that is replaced everywhere; a shorter one could be part of a word."""
_SHOWN = 8
_NAME = "<name>"


def anonymise_recording(recording: Recording) -> Recording:
    """Return a run with names of nodes, users, sources and GPUs replaced by numbered ones.

    What stays: times, values, GPU models, bus ids, and the names people gave to runs and steps, unless a host or user
    is part of them.
    """
    names = _Pseudonyms(recording.run)
    series = recording.series
    place = series.schema.get_field_index("device")
    devices = _devices(series.column("device"), names)
    return Recording(
        run=names.run(recording.run),
        series=series.set_column(place, series.schema.field(place), devices),
        training=_anonymise_training(recording.training, names),
    )


def _devices(column: Any, names: "_Pseudonyms") -> Any:  # noqa: ANN401 - the stubs give dictionary arrays two parameters Arrow has not
    """Return the device of each row under its new id."""
    chunks = []
    for chunk in column.chunks:
        texts = [names.device(text) for text in chunk.dictionary.to_pylist()]
        chunks.append(columns.categories(columns.integers(chunk.indices), texts))
    return pa.chunked_array(chunks)


def _anonymise_training(training: "pa.Table", names: "_Pseudonyms") -> "pa.Table":
    """Return training metrics without names in theirs; metrics stay as many as they were."""
    place = training.schema.get_field_index("name")
    column: Any = training.column(place)
    shown: dict[str, str] = {}
    chunks = []
    for chunk in column.chunks:
        for text in chunk.dictionary.to_pylist():
            if text not in shown:
                shown[text] = _tell_apart(names.text(text), shown.values())
        texts = [shown[text] for text in chunk.dictionary.to_pylist()]
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, columns.strings_to_arrow(texts)))
    return training.set_column(place, training.schema.field(place), pa.chunked_array(chunks)) if chunks else training


def _tell_apart(name: str, others: Collection[str]) -> str:
    """Return a name, with a number where another has it already."""
    numbered = (f"{name} {number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in others)


class _Pseudonyms:
    """The names of a run and the pseudonyms that replace them."""

    def __init__(self, run: Run) -> None:
        nodes = dict.fromkeys(device.node for device in run.devices if device.node)
        self._nodes = {node: f"node_{place}" for place, node in enumerate(nodes, 1)}
        self._sources = {each.locator: _source_name(each, place) for place, each in enumerate(run.sources, 1)}
        files = {PurePath(locator).name: name for locator, name in self._sources.items() if "#" not in locator}
        people = dict.fromkeys((name for name in _personal_names(run) if len(name) >= _SHORTEST), _NAME)
        named = dict.fromkeys(_names_from_files(run), f"run-{run.id[:_SHOWN]}")
        self._texts = {**people, **files, **self._sources, **named, **self._nodes}

    def text(self, text: str) -> str:
        """Return a text without names."""
        text = _PATH.sub("<path>", hide_addresses(text))
        for name in sorted(self._texts, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", self._texts[name], text)
        return text

    def device(self, device: str) -> str:
        """Return the id of a device without the name of its node."""
        node, slash, local = device.rpartition("/")
        return f"{self._nodes.get(node, node)}{slash}{local}"

    def run(self, run: Run) -> Run:
        """Return what is known about a run without names."""
        return replace(
            run,
            name=self.text(run.name),
            step=None if run.step is None else self.text(run.step),
            sources=tuple(replace(each, locator=self._sources[each.locator]) for each in run.sources),
            devices=tuple(map(self._device, run.devices)),
            stages=tuple(map(self._stage, run.stages)),
            params=tuple(self._pairs(run.params)),
            tags=tuple(self._pairs(run.tags)),
            quality=self._quality(run.quality),
        )

    def _device(self, device: Device) -> Device:
        uuid = device.uuid and f"GPU-{_short_hash(device.uuid)}"
        node = device.node and self._nodes[device.node]
        return replace(device, id=self.device(device.id), node=node, uuid=uuid, serial=_short_hash(device.serial))

    def _stage(self, stage: Stage) -> Stage:
        return replace(stage, name=self.text(stage.name), node=stage.node and self._nodes.get(stage.node, _NAME))

    def _pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, value in pairs:
            # a param that is one word is a setting, whoever has the same name
            shown = key if _SINGLE_WORD.fullmatch(key) else self.text(key)
            yield shown, _NAME if _is_personal(key, value) else self.text(value)

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
        )


def _is_personal(key: str, value: str) -> bool:
    """Return whether a param or tag names a person or a machine."""
    return _PERSONAL.search(key) is not None or names_machine(key, value)


def _short_hash(identity: str | None) -> str | None:
    """Return a short hash of an identity, so that boards can still be distinguished."""
    return identity and sha256(identity.encode()).hexdigest()[:_SHOWN]


def _anonymise_kernel_message(text: str) -> str:
    """Return a message without the host and the process that a line of the kernel's log names."""
    for shape, instead in _KERNEL if "NVRM: Xid (" in text else ():
        text = shape.sub(instead, text)
    return text


def _source_name(source: Source, place: int) -> str:
    """Return the pseudonym of a source: its number and its file extensions."""
    if "#" in source.locator:
        return f"{source.kind}:store#{source.locator.rpartition('#')[2]}"
    ends = [end for end in PurePath(source.locator).suffixes[-2:] if _ENDS.fullmatch(end)]
    return f"source-{place}{''.join(ends)}"


def _names_from_files(run: Run) -> Iterator[str]:
    """Yield the name of a run if it merely repeats the name of its file or folder."""
    paths = [PurePath(source.locator) for source in run.sources]
    own = PurePath(run.name).parts
    if any(own[-1:] in {(path.stem,), (path.name,), (path.parent.name,)} for path in paths) or not paths:
        yield run.name


def _personal_names(run: Run) -> Iterator[str]:
    """Yield the names of people and machines that the run mentions."""
    for key, value in run.params_and_tags:
        if _PERSONAL.search(key):
            yield from (value, *value.split(", "))
        if names_machine(key, value):
            yield from list_machines(value)
        yield from find_named_machines(value)
    texts = (*(source.locator for source in run.sources), *(value for _, value in run.params_and_tags))
    for text in texts:
        yield from _HOME.findall(text)
