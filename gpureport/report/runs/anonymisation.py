"""Replaces the names of people and machines. Different names remain different."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from ipaddress import AddressValueError, IPv6Address
from itertools import chain, count
from pathlib import PurePath
from typing import Any, TypeVar, cast

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import ClockStep, LogEvent, LogGap
from gpureport.importers.labels import expand_node_list, shorten_node
from gpureport.names import LABEL_TAGS
from gpureport.recording import Recording, Run

ADDRESS = "<address>"
_WORDS = "|".join(["owner|author|host|hostname|machine|email", *(tag.name for tag in LABEL_TAGS if tag.is_personal)])
_PERSONAL = re.compile(rf"(?:^|[._/-])(?:{_WORDS})(?:$|[._/-]|name)", re.IGNORECASE)
_HOME = re.compile(r"[\\/](?:home|Users|users)[\\/]([^\\/\s]+)")
_DOMAINS = "local|lan|internal|intranet|corp|localdomain|cluster|com|org|net|edu|gov|mil"
"""Top-level domains that are not file extensions or modules."""
_COUNTRIES = "eu|de|uk|fr|ch|nl|jp|cn|kr"
"""Country domains that may be language codes: `bleu.de` is a metric, `node7.example.de` a host."""
_IPV6 = re.compile(
    r"(?<![\w:.])\[?(?P<address>[0-9a-f:.]{2,46}+)(?P<rest>(?:%\w{1,15})?(?:/\d{1,3})?(?:\](?::\d{1,5})?)?)",
    re.IGNORECASE,
)
_SHAPES = (
    re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"),
    re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://[^\s\"'<>(),]*[^\s\"'<>(),.;]", re.IGNORECASE),
    # network cards, including InfiniBand
    re.compile(r"(?<![\w:.-])[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4,18}(?![\w:-])", re.IGNORECASE),
    re.compile(r"(?<![\w.])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?!\w|\.\w)", re.IGNORECASE),
    re.compile(r"(?<![\w:])[0-9a-f]{4}(?::[0-9a-f]{4}){3}(?![\w:])", re.IGNORECASE),
    re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?::\d{1,5})?(?!\w|\.\w)"),
)
_HOST_WITH_DOMAIN = re.compile(
    rf"(?<![\w.@-])(?:(?:[a-z0-9][\w-]*+\.)+(?:{_DOMAINS})|(?:[a-z0-9][\w-]*+\.){{2,}}(?:{_COUNTRIES}))"
    r"(?::\d{1,5})?(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_NAMING = re.compile(
    r"(?:^|[._/-])(?:hosts?|hostnames?|nodes?|node_?list|addr|address|ips?|endpoints?|servers?|machines?|coordinator"
    r"|gateway|broker|ur[il])(?:$|[._/-](?:name|list|address)$)",
    re.IGNORECASE,
)
"""Matches names of params that usually contain hosts."""
_NAMED = re.compile(
    r"(?<![\w.-])(?P<option>--?)?[\w.-]*?(?:hosts?|hostname|nodelist|addr|address|endpoint|server|machine)"
    r"(?:=|(?(option)[ \t]{1,4}|=))[\"']?([A-Za-z][\w.\[\],-]*\w\]?)",
    re.IGNORECASE,
)
"""Matches a host in a command line or settings: `--rdzv_endpoint=node3:29500`, `host=node3`.

After a space, a value is a host only if an option precedes it: `host memory` is not a host.
"""
_NUMBERED = r"(?<![^\W_])(?:serial|uuid)s?(?:[_ ]?n(?:o|umber))?"
_IDENTITY = re.compile(
    rf"({_NUMBERED}[\"']?[=: ]{{1,3}}[\"']?)?"
    r"((?<![^\W_])(?:GPU|MIG|MIG-GPU)-[0-9a-f]{8}[0-9a-f-]*+|(?(1)(?=[a-z_-]*+\d)[\w-]{5,}+|(?!)))",
    re.IGNORECASE,
)
"""Matches the uuid of a GPU, and a number named `uuid` or `serial`."""
_PORT = re.compile(r":\d{1,5}$")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*://")
_NO_NAME = re.compile(r"[-+\d.eE%]*|true|false|none|null|localhost|auto", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/][^\s\\/:,;\"'<>|]+){2,}[\\/]?")
_SINGLE_WORD = re.compile(r"[A-Za-z_]+")
_KERNEL = (
    # before it are the timestamp and the host
    (re.compile(r"^.*?(?=NVRM: Xid \()", re.DOTALL), ""),
    (re.compile(r"\bpid='?[^\s,']+'?"), "pid=<process>"),
    (re.compile(r"\bname=[^,]*"), "name=<process>"),
)
_ENDS = re.compile(r"\.(?:csv|tsv|txt|log|out|err|jsonl?|ndjson|xml|db|gz|zst|bz2|xz)", re.IGNORECASE)
"""File extensions to keep. Any other suffix could be part of a host name."""
_SHORTEST = 3  # minimum length of a name; a shorter one could be part of a word
_SHOWN = 8
_NAME = "<name>"
_MARK = "\ufffe"  # never in text: a Unicode noncharacter
_MARKED = re.compile(rf"<{_MARK}(host-\d+)>")
_Place = TypeVar("_Place", LogGap, ClockStep, LogEvent)


def hide_addresses(text: str, hide_host: Callable[[str], str]) -> str:
    first, second, *others = _SHAPES
    text = second.sub(ADDRESS, first.sub(ADDRESS, text))
    text = _IPV6.sub(_hide_ipv6, text) if ":" in text else text
    for shape in others:
        text = shape.sub(ADDRESS, text)
    return _HOST_WITH_DOMAIN.sub(lambda found: hide_host(_PORT.sub("", found.group())), text)


def names_machine(key: str, value: str) -> bool:
    return _NAMING.search(key) is not None and _NO_NAME.fullmatch(value.strip()) is None


def list_machines(value: str) -> Iterator[str]:
    """Yield the hosts in `node[1-2]` or `tcp://a:29500, b.example.org`."""
    for part in expand_node_list(value):
        host = _PORT.sub("", _SCHEME.sub("", part).partition("/")[0])
        if _NO_NAME.fullmatch(host) is None:
            yield host


def _hide_ipv6(found: re.Match[str]) -> str:
    """Return `<address>` for an IPv6 address. Keep `::`, which may be an operator in code."""
    address = found["address"]
    ended = address.rstrip(".")
    # a colon may follow in the sentence
    for bare in (ended, ended.removesuffix(":")):
        try:
            IPv6Address(bare)
        except AddressValueError:
            continue
        if any(map(str.isalnum, bare)):
            return ADDRESS + address[len(bare) :] + ("" if bare == address else found["rest"])
    return found.group()


class _SharedNames:
    def __init__(self, runs: Iterable[Run]) -> None:
        self._numbers: dict[str, int] = {}
        self._namesakes: dict[str, list[str]] = {}
        self._shown: dict[tuple[str, str], str] = {}
        self._candidates: dict[tuple[str, str], Iterator[str]] = {}
        self.taken: set[tuple[str, str]] = set()
        self.texts: dict[str, str] = {}
        for run in runs:
            known = (text for gpu in run.gpus for text in (gpu.uuid, gpu.serial) if text)
            self.texts |= {each.removeprefix("GPU-"): _hide_id(each) for each in known if len(each) > _SHORTEST}
            named = (*(device.node for device in run.devices), *(stage.node for stage in run.stages))
            nodes = [node for node in dict.fromkeys(named) if node]
            machines = [*nodes]
            people = [name for source in run.sources for name in _HOME.findall(source.locator)]
            for key, value in run.params_and_tags:
                if names_machine(key, value):
                    machines += list_machines(value)
                elif _PERSONAL.search(key):
                    people += (value, *value.split(", "))
                machines += (machine for match in _NAMED.finditer(value) for machine in list_machines(match[2]))
                people += _HOME.findall(value)
            for name in dict.fromkeys(machines):
                for called in (name, name[: len(shorten_node(name))]):
                    if called in nodes or len(called) >= _SHORTEST:
                        self.texts[called] = self.hide_host(called)
            for name in (name for name in people if len(name) >= _SHORTEST):
                self.texts.setdefault(name, _NAME)

    def hide_host(self, host: str) -> str:
        """Return `host-1` and so on. A name without a domain matches the first host with that name."""
        name, short = host.lower(), shorten_node(host)
        if name not in self._numbers:
            namesakes = self._namesakes.setdefault(short, [])
            is_known = bool(namesakes) and (name == short or namesakes == [short])
            new = max(self._numbers.values(), default=0) + 1
            self._numbers[name] = self._numbers[namesakes[0]] if is_known else new
            namesakes.append(name)
        return f"host-{self._numbers[name]}"

    def tell_apart(self, what: str, text: str, hidden: str) -> str:
        """Return the hidden form of a text, numbered if another text has the same form."""
        if text != hidden and (what, text) not in self._shown:
            numbered = chain([hidden], (f"{hidden} {number}" for number in count(2)))
            # each iterator continues where it last stopped
            candidates = self._candidates.setdefault((what, hidden), numbered)
            self._shown[what, text] = next(each for each in candidates if (what, each) not in self.taken)
            self.taken.add((what, self._shown[what, text]))
        return text if text == hidden else self._shown[what, text]


def anonymise_recordings(recordings: Sequence[Recording]) -> list[Recording]:
    shared = _SharedNames(recording.run for recording in recordings)
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
    place, column = table.schema.get_field_index(name), cast("Any", table.column(name))
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices, columns.strings_to_arrow([rename(text) for text in chunk.dictionary.to_pylist()])
        )
        for chunk in column.chunks
    ]
    return table.set_column(place, table.schema.field(place), pa.chunked_array(chunks)) if chunks else table


class _Pseudonyms:
    def __init__(self, run: Run, shared: _SharedNames) -> None:
        self._shared = shared
        paths = [PurePath(each.locator) for each in run.sources]
        ends = (filter(_ENDS.fullmatch, path.suffixes[-2:]) for path in paths)
        hidden = [f"source-{place}{''.join(end)}" for place, end in enumerate(ends, 1)]
        self._sources = {each.locator: name for each, name in zip(run.sources, hidden, strict=True)}
        files = {path.name: name for path, name in zip(paths, hidden, strict=True)}
        ids = {place.rpartition("#")[2]: name for place, name in self._sources.items()}
        self._texts = {**shared.texts, **files, **ids, **self._sources}
        last = PurePath(run.name).name
        if not paths or any("#" in path.name or last in (path.stem, path.name, path.parent.name) for path in paths):
            # its file, folder or tracker named the run
            self._texts[run.name] = f"run-{run.id[:_SHOWN]}"
        names = "|".join(map(re.escape, sorted(filter(None, self._texts), key=len, reverse=True))) or r"(?!)"
        self._any = re.compile(rf"(?<![\w{_MARK}])(?:{names})(?!\w)")

    def text(self, text: str) -> str:
        # mark pseudonyms, as other hosts may have these names
        text = hide_addresses(text, lambda host: f"<{_MARK}{self._shared.hide_host(host)}>")
        text = _PATH.sub("<path>", text)
        known = self._texts
        text = _IDENTITY.sub(lambda one: (one[1] or "") + (known.get(one[2]) or _hide_id(one[2])), text)
        text = self._any.sub(lambda found: known[found.group()], text)
        return _MARKED.sub(r"\1", text)

    def metric(self, name: str) -> str:
        return self._shared.tell_apart("metric", name, self.text(name))

    def keep_plain_texts(self, recording: Recording) -> None:
        run, training = recording.run, cast("Any", recording.training.column("name"))
        names = [text for chunk in training.chunks for text in chunk.dictionary.to_pylist()]
        texts = [("metric", name, self.text(name)) for name in names]
        texts += [("step", run.step, self.text(run.step))] if run.step else []
        for what, pairs in (("param", run.params), ("tag", run.tags)):
            texts += [(named, value, hidden) for _, named, value, hidden in self._hide_values(what, pairs)]
        self._shared.taken.update((what, text) for what, text, hidden in texts if text == hidden)

    def device(self, device: str) -> str:
        node, slash, local = device.rpartition("/")
        return f"{self._shared.hide_host(node)}{slash}{local}" if node else device

    def _at(self, place: _Place) -> _Place:
        return replace(place, device=place.device and self.device(place.device))

    def run(self, run: Run) -> Run:
        quality = run.quality
        return replace(
            run,
            name=self.text(run.name),
            step=run.step and self._shared.tell_apart("step", run.step, self.text(run.step)),
            sources=tuple(replace(each, locator=self._sources[each.locator]) for each in run.sources),
            devices=tuple(
                replace(
                    each,
                    id=self.device(each.id),
                    node=each.node and self._shared.hide_host(each.node),
                    uuid=each.uuid and _hide_id(each.uuid),
                    serial=each.serial and _hide_id(each.serial),
                )
                for each in run.devices
            ),
            stages=tuple(
                replace(each, name=self.text(each.name), node=each.node and self._shared.hide_host(each.node))
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
                # rejected lines may contain any name
                rejected=tuple(replace(each, examples=()) for each in quality.rejected),
            ),
        )

    def _pairs(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, named, value, hidden in self._hide_values(what, pairs):
            # a key of one word is a setting, even if a person has its name
            shown = key if _SINGLE_WORD.fullmatch(key) else self.text(key)
            machines = (
                dict.fromkeys(map(self._shared.hide_host, list_machines(value))) if names_machine(key, value) else ()
            )
            yield shown, ", ".join(machines) or self._shared.tell_apart(named, value, hidden)

    def _hide_values(self, what: str, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
        for key, value in pairs:
            hides_all = _PERSONAL.search(key) or names_machine(key, value)
            before = "uuid=" * bool(re.search(rf"{_NUMBERED}(?![^\W_])", key, re.IGNORECASE))
            parts = value.split(", ") if before else [value]
            hidden = ", ".join(self.text(before + part).removeprefix(before) for part in parts)
            yield key, f"{what} {key}", value, _NAME if hides_all else hidden


def _hide_id(text: str) -> str:
    return ("GPU-" if text[:4].upper() in {"GPU-", "MIG-"} else "") + sha256(text.encode()).hexdigest()[:_SHOWN]


def _hide_process(text: str) -> str:
    for shape, instead in _KERNEL if "NVRM: Xid (" in text else ():
        text = shape.sub(instead, text)
    return text
