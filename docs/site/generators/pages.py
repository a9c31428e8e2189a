"""Writes the reference pages from the code."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

import gpureport as api
from generators.limit_rows import LIMITS
from gpureport.cli.main import gpureport
from gpureport.metrics import METRICS, Metric, MetricKind, Scope

Option = tuple[str, str, str]
MADE = "This page is generated from the code by `python docs/site/make_pages.py`.\n"


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    return "\n".join([row(*header), row(*("---" for _ in header)), *(row(*cells) for cells in rows)]) + "\n"


_METRICS = """Each line has the column, its unit, what records it, the meaning and, in brackets, its OpenTelemetry name.
A cell without a value was not recorded; it is never 0. Ratios run from 0 to 1.
"""


def metrics_page() -> str:
    """Return docs/reference/metrics.md, with the metrics grouped by scope and by the time that a value covers."""
    parts = ["# Metrics\n", MADE, _METRICS]
    for scope, title in ((Scope.GPU, "GPU"), (Scope.HOST, "Host")):
        groups: dict[str, dict[str, list[str]]] = {}
        for metric in METRICS:
            if metric.scope is scope:
                line, reason = _describe_metric(metric)
                groups.setdefault(metric.covers, {}).setdefault(line, []).append(reason)
        parts.append(f"## {title}\n")
        for covers, lines in groups.items():
            reasons = {line: ", ".join(f"`{each}`" for each in named if each) for line, named in lines.items()}
            texts = [line + (f" REASON: {reasons[line]}." if reasons[line] else "") for line in lines]
            parts += [f"Time covered: {covers}.\n", "\n".join(texts) + "\n"]
    return "\n".join(parts)


def _describe_metric(metric: Metric) -> tuple[str, str]:
    """Return a metric's line, which is the same for all clock event reasons, and the reason."""
    unit = "" if metric.unit in ("", "1") else f" {metric.unit}"
    counted = "" if metric.kind is MetricKind.GAUGE else f" ({metric.kind.value})"
    otel = f" (`{metric.otel}`)" if metric.otel else ""
    line = f"- `{metric.name}`{unit}{counted}, `{metric.recorded_by}`: {metric.brief}{otel}"
    reason = re.sub("clock_event_|_seconds_total", "", metric.name)
    words = f"by {reason.replace('_', ' ')}"
    if words not in metric.brief:
        return line, ""
    return re.sub(r" \(bit \w+\)", "", line.replace(words, "for REASON").replace(reason, "REASON")), reason


_LIMITS = f"""# Limits

{MADE}
Input is limited, so that a broken or hostile file costs little. Beyond a limit the input is refused, unless the last
column says otherwise, and one line says what to do. A run that is left out is named, and the others are read.
"""

_MEMORY = """## How little memory is enough

With a limit on mapped memory (`ulimit -v`), `ingest` and `analyze` need 600 MB for a log with 1,000 rows, and other
commands 800 MB on two cores. With less, a command ends with a line that says so, or OpenBLAS or Arrow abort; a partly
stored run is never listed.
"""


def limits_page() -> str:
    """Return docs/reference/limits.md."""
    return "\n".join([_LIMITS, table(("what", "at most", "beyond it"), LIMITS), _MEMORY])


def commands(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all its subcommands, each with the words that call it."""
    yield name, group
    if isinstance(group, click.Group):
        context = click.Context(group, info_name=name)
        for each in group.list_commands(context):
            command = group.get_command(context, each)
            if command is not None and not command.hidden:
                yield from commands(command, f"{name} {each}")


def _option_row(parameter: click.Parameter) -> tuple[str, str]:
    """Return an option as it is typed, and its help; the wording does not depend on the version of click."""
    typed = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    takes_value = isinstance(parameter, click.Option) and not parameter.is_flag
    choices = "|".join(map(str, parameter.type.choices)) if isinstance(parameter.type, click.Choice) else None
    value = f" {parameter.metavar or choices or parameter.type.name.upper()}" if takes_value else ""
    return typed + value, (getattr(parameter, "help", None) or "") + (" Required." if parameter.required else "")


def _usage(name: str, command: click.Command) -> str:
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    names = [each.metavar or (each.name or "").upper() for each in arguments]
    words = [
        (name if each.required or each.metavar else f"[{name}]")
        + ("..." if each.nargs == -1 and each.metavar is None else "")
        for name, each in zip(names, arguments, strict=True)
    ]
    tail = ["COMMAND"] if isinstance(command, click.Group) else words
    return " ".join([name, *tail])


_CLI = """`COMMAND --help` describes a command and its usual options; `--help-all` lists all of them. A
SOURCE is a log, a folder of logs, a tracker's store (`mlflow:STORE#RUN`), a stored run, or a baseline. Commands
on stored runs take `--store`.

One line lets Tab complete commands, options and files:

```
echo 'command -v gpureport > /dev/null && eval "$(gpureport completion bash)"' >> ~/.bashrc   # bash
echo 'command -v gpureport > /dev/null && eval "$(gpureport completion zsh)"' >> ~/.zshrc     # zsh
gpureport completion fish > ~/.config/fish/completions/gpureport.fish                         # fish
```
"""

_STORE = ["`--store`"]
_COMMON = 2
"""Number of commands from which an option that reads the same in each is described only once."""


def cli_page() -> str:
    """Return docs/reference/cli.md; options that several commands share come once, at the end, by section."""
    taking = dict(_list_options())
    uses = Counter(option for options in taking.values() for option in options)
    shared: dict[str, list[Option]] = {}
    for option in uses:
        if uses[option] >= _COMMON:
            shared.setdefault(option[0], []).append(option)
    parts = ["# Command line\n", MADE, _CLI]
    for name, command in commands(gpureport, "gpureport"):
        own = [option for option in taking[name] if uses[option] < _COMMON]
        parts += [f"## {_usage(name, command)}\n", _help(command)]
        parts += [_list_meanings(own)] if own else []
        names = list(_name_shared([option for option in taking[name] if option not in own], shared))
        parts += [f"[Shared options](#shared-options): {', '.join(names)}.\n"] if names and names != _STORE else []
    parts.append("## Shared options\n")
    return "\n".join([*parts, *(f"**{section}**\n\n{_list_meanings(options)}" for section, options in shared.items())])


def _help(command: click.Command) -> str:
    """Return a command's purpose and example, which how-to pages complete; for the program itself, its whole help."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    if command is not gpureport:
        example = [text.replace("Example: ", "Example: `") + "`" for text in paragraphs if text.startswith("Example: ")]
        paragraphs = [paragraphs[0], *example]
    return "\n\n".join(paragraphs) + "\n"


def _list_options() -> Iterator[tuple[str, list[Option]]]:
    """Yield each command with its options: the section of the help, the words to type, and the meaning."""
    for name, command in commands(gpureport, "gpureport"):
        options = [each for each in command.params if isinstance(each, click.Option)]
        yield name, [(getattr(each, "section", "Options"), *_option_row(each)) for each in options]


def _name_shared(options: list[Option], shared: dict[str, list[Option]]) -> Iterator[str]:
    """Yield a command's options that others share, then the sections that it takes as a whole."""
    whole = [section for section, every in shared.items() if set(every) <= set(options)]
    yield from (re.findall("`[^`]+`", typed)[-1] for section, typed, _ in options if section not in whole)
    if whole:
        yield f"all of *{', '.join(whole)}*"


def _list_meanings(options: list[Option]) -> str:
    return "\n".join(f"- {typed}: {meaning}" for _, typed, meaning in options) + "\n"


_PYTHON = f"""# Python

{MADE}
Read logs, analyse and compare runs, and write reports. `import gpureport` loads no other library; the first call loads
NumPy and pyarrow, and a frame also pandas.

```python
import gpureport

runs = gpureport.read("sample_logs/input_starved", labels={{"work": "1000:steps"}})
analysis = gpureport.analyze(runs[0])
print(analysis)
print(analysis.findings_frame()[["kind", "severity", "lost_gpu_seconds"]])
print(analysis.gpu_time_frame())
```

As the last line of a notebook's cell, an analysis or a comparison shows the first screen of its report. Steps are
compared in the order given, or by name:

```python
import gpureport

runs = gpureport.read("sample_logs/input_starved", labels={{"work": "1000:steps"}})
baseline, more_workers, mixed_precision = runs
comparison = gpureport.compare({{"before": baseline, "after": [more_workers, mixed_precision]}})
print(comparison.deltas_frame()[["metric", "before", "after", "verdict"]])
print(comparison.gains_frame()[["step", "figure", "ratio", "verdict"]])
print(gpureport.report(comparison, format="md"))
gpureport.report(comparison, "steps.html")
comparison.plot("gpu_time").figure.savefig("steps.png")
```

Every sample is a row of `Recording.to_pandas()`; without pandas, use `recording.series`, an Arrow table:

```python
import gpureport

(recording,) = gpureport.read("sample_logs/thermal_throttle", gpus=2)
frame = recording.to_pandas().set_index("timestamp")
print(frame["gpu_temperature_celsius"].resample("1min").max())
```

A missing or unusable file, or a wrong option or setting, raises `gpureport.errors.GpureportError`, with the message
that the command line prints; a wrong call raises `TypeError` or `ValueError`. `help(gpureport.read)` lists these.
"""
_FIELDS = {
    api.Analysis: ("run", "findings", "not_judged", "statistics", "gpu_time", "cost", "jobs", "phases", "stages"),
    api.Comparison: ("steps", "deltas", "primary", "analyses"),
    api.Recording: ("run", "series", "training"),
}
"""The attributes that a caller reads most."""


def python_page() -> str:
    """Return docs/reference/python.md."""
    parts = [_PYTHON]
    for function in (api.read, api.analyze, api.compare, api.report):
        parts += [f"## {function.__name__}\n", _signature(function), _described(inspect.getdoc(function) or "")]
    for kind, names in _FIELDS.items():
        first = (inspect.getdoc(kind) or "").partition("\n\n")[0]
        parts += [f"## {kind.__name__}\n", f"{first}\n"]
        texts = _attributes(kind)
        lines = [f"- `{name}`: {texts[name]}" for name in names]
        for name, method in vars(kind).items():
            if name.endswith("_frame") or name == "plot" or (name == "to_pandas" and kind is api.Recording):
                lines.append(f"- `{name}()`: {_sentence(method)}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _signature(function: Callable[..., Any]) -> str:
    """Return how a function is called, without types."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    called = signature.replace(parameters=bare, return_annotation=signature.empty)
    return f"`gpureport.{function.__name__}{called}`\n"


def _described(text: str) -> str:
    """Return a docstring as Markdown: its sections as paragraphs, their entries as a list."""
    lines = []
    for block in (part for part in text.split("\n\n") if not part.startswith("Raises ")):
        heading, _, entries = block.partition(":\n")
        if not entries.startswith("    "):
            lines.append(f"{block}\n")
            continue
        joined = re.sub(r"\n {8,}", " ", entries)
        items = [line.strip().partition(": ") for line in joined.splitlines()]
        lines.append(f"**{heading}**\n")
        lines.append("\n".join(f"- `{name}`: {what}" if what else f"- {name}" for name, _, what in items) + "\n")
    return "\n".join(lines)


def _attributes(kind: type) -> dict[str, str]:
    """Return the descriptions of attributes in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        block = (inspect.cleandoc(each.__doc__ or "")).partition("Attributes:\n")[2]
        joined = re.sub(r"\n {8,}", " ", block)
        found |= {name: what for name, _, what in (line.strip().partition(": ") for line in joined.splitlines())}
    return found


def _sentence(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring, without its first word."""
    text = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()).removeprefix("Return ")
    return text[:1].upper() + text[1:]
