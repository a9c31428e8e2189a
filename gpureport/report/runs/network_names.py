"""Names and addresses of machines in a text: of IP in both versions, of network cards, of hosts by their domain.

And the names of people and machines that a run mentions, and what is shown instead, so that two that differ still do.
"""

import re
from collections.abc import Callable, Iterator
from ipaddress import AddressValueError, IPv6Address
from itertools import chain, count
from pathlib import PurePath

from gpureport.importers.labels import expand_node_list, shorten_node
from gpureport.names import LABEL_TAGS
from gpureport.recording import Run

ADDRESS = "<address>"
_WORDS = "|".join(["owner|author|host|hostname|machine|email", *(tag.name for tag in LABEL_TAGS if tag.is_personal)])
_PERSONAL = re.compile(rf"(?:^|[._/-])(?:{_WORDS})(?:$|[._/-]|name)", re.IGNORECASE)
"""Keys of params and tags whose values name a person or a machine."""
_HOME = re.compile(r"[\\/](?:home|Users|users)[\\/]([^\\/\s]+)")
_DOMAINS = "local|lan|internal|intranet|corp|localdomain|cluster|com|org|net|edu|gov|mil"
"""Ends of names of machines that are no ends of names of files or of Python's modules."""
_COUNTRIES = "eu|de|uk|fr|ch|nl|jp|cn|kr"
"""Ends of names of machines that are names of languages too: `bleu.de` is a metric, `node7.example.de` is none."""
_IPV6 = re.compile(
    r"(?<![\w:.])\[?(?P<address>[0-9a-f:.]{2,46}+)(?P<rest>(?:%\w{1,15})?(?:/\d{1,3})?(?:\](?::\d{1,5})?)?)",
    re.IGNORECASE,
)
_SHAPES = (
    re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"),
    re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://[^\s\"'<>(),]*[^\s\"'<>(),.;]", re.IGNORECASE),
    # network cards, those of InfiniBand among them
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
"""Names of params whose values are machines, where these are no numbers."""
_NAMED = re.compile(
    r"(?<![\w.-])(?P<option>--?)?[\w.-]*?(?:hosts?|hostname|nodelist|addr|address|endpoint|server|machine)"
    r"(?:=|(?(option)[ \t]{1,4}|=))[\"']?([A-Za-z][\w.\[\],-]*\w\]?)",
    re.IGNORECASE,
)
"""The machines in a command line or a list of settings: `--rdzv_endpoint=node3:29500`, `host=node3`.

What follows a blank belongs to an option alone: words such as `host memory` name no machine.
"""
_PORT = re.compile(r":\d{1,5}$")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*://")
_NO_NAME = re.compile(r"[-+\d.eE%]*|true|false|none|null|localhost|auto", re.IGNORECASE)


def hide_addresses(text: str, hide_host: Callable[[str], str] = lambda _: ADDRESS) -> str:
    """Return a text with `<address>` for addresses, and what `hide_host` returns for hosts that their domain tells."""
    first, second, *others = _SHAPES
    text = second.sub(ADDRESS, first.sub(ADDRESS, text))
    text = _IPV6.sub(_hide_ipv6, text) if ":" in text else text
    for shape in others:
        text = shape.sub(ADDRESS, text)
    return _HOST_WITH_DOMAIN.sub(lambda found: hide_host(_remove_port(found.group())), text)


def names_machine(key: str, value: str) -> bool:
    """Return whether a param or tag holds machines, and no number of them."""
    return _NAMING.search(key) is not None and _NO_NAME.fullmatch(value.strip()) is None


def list_machines(value: str) -> Iterator[str]:
    """Yield the machines that a value lists, without ports and schemes: `node[1-2]`, `tcp://a:29500, b.example.org`."""
    for part in expand_node_list(value):
        host = _remove_port(_SCHEME.sub("", part).partition("/")[0])
        if _NO_NAME.fullmatch(host) is None:
            yield host


def _remove_port(host: str) -> str:
    return _PORT.sub("", host)


def _hide_ipv6(found: re.Match[str]) -> str:
    """Return `<address>` for an address of IPv6; `::` alone is a sign of programming languages."""
    address = found["address"]
    ended = address.rstrip(".")
    # a colon may follow it in a sentence
    for bare in (ended, ended.removesuffix(":")):
        try:
            IPv6Address(bare)
        except AddressValueError:
            continue
        if any(map(str.isalnum, bare)):
            return ADDRESS + address[len(bare) :] + ("" if bare == address else found["rest"])
    return found.group()


def is_personal(key: str) -> bool:
    return _PERSONAL.search(key) is not None


def list_own_names(run: Run) -> Iterator[str]:
    """Yield the name of a run if it merely repeats the name of its file or folder."""
    paths, last = [PurePath(source.locator) for source in run.sources], PurePath(run.name).parts[-1:]
    if not paths or any(last in {(path.stem,), (path.name,), (path.parent.name,)} for path in paths):
        yield run.name


def list_mentioned_machines(run: Run) -> Iterator[str]:
    for key, value in run.params_and_tags:
        if names_machine(key, value):
            yield from list_machines(value)
        for match in _NAMED.finditer(value):
            yield from list_machines(match[2])


def list_people(run: Run) -> Iterator[str]:
    for key, value in run.params_and_tags:
        if is_personal(key) and not names_machine(key, value):
            yield from (value, *value.split(", "))
    for text in (*(source.locator for source in run.sources), *(value for _, value in run.params_and_tags)):
        yield from _HOME.findall(text)


class HostNumbers:
    """Gives each machine a number in the order in which it is met, the same with and without its domain."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._namesakes: dict[str, list[str]] = {}

    def hide(self, host: str) -> str:
        """Return `host-1`, `host-2`, …; a name without a domain is the first machine that is called so."""
        name, short = host.lower(), shorten_node(host)
        if name not in self._numbers:
            namesakes = self._namesakes.setdefault(short, [])
            is_known = bool(namesakes) and (name == short or namesakes == [short])
            self._numbers[name] = (
                self._numbers[namesakes[0]] if is_known else max(self._numbers.values(), default=0) + 1
            )
            namesakes.append(name)
        return f"host-{self._numbers[name]}"


class DistinctTexts:
    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()
        self._candidates: dict[tuple[str, str], Iterator[str]] = {}

    def keep(self, what: str, text: str) -> None:
        """Note a text that stays as it is, before any other may be shown like it."""
        self._taken.add((what, text))

    def tell_apart(self, what: str, text: str, hidden: str) -> str:
        """Return a text without its names; with a number where another of the same kind (a step, …) looks the same."""
        if text == hidden:
            return text
        if (what, text) not in self._shown:
            numbered = (f"{hidden} {number}" for number in count(2))
            candidates = self._candidates.setdefault((what, hidden), chain([hidden], numbered))
            self._shown[what, text] = next(each for each in candidates if (what, each) not in self._taken)
            self._taken.add((what, self._shown[what, text]))
        return self._shown[what, text]
