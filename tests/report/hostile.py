"""Texts that try to be more than text, and runs that carry one wherever a log or a person can put text."""

import unicodedata
from dataclasses import replace

from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from gpureport.testing import AbsentCells, Finding, LogEvent, Rejected, Work
from tests.report import examples

TEXTS = {
    "script": "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "attribute": "\" onmouseover=\"alert(1)\" x='y' style='color:red'",
    "template": "{{ report.title }}{% include 'x' %}{# hidden #}",
    "mathematics": r"$\frac{x$ $x^2$ \begin{matrix}",
    "typesetting": '#include("/etc/passwd") #set page(fill: red) *bold* @ref <label> ```raw',
    "macro": "#include <stdio.h>\n#define X 1",
    "table": "a | b || c |---|---| `code` \\| ",
    "link": "[click](javascript:alert(1)) ![x](https://evil.example/x.png) @everyone #1",
    "address": "<https://evil.example> https://evil.example www.evil.example a@evil.example",
    "heading": "# heading\n## another\n- list\n1. one\n> quote\n---\n===",
    "entity": "&lt;b&gt; &amp;amp; &#60;script&#62; ]]> <!-- --> <![CDATA[",
    "escape codes": "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "control codes": "a\x1b[2J \x9b31m \x07\x08\x00\x7f b\x1bPq\x1b\\\x90 c\x1b",
    "right to left": "abc \u202etxt.exe\u202c \u2066isolated\u2069 \u200f\u061c شريط עברית",
    "length": "x" * 10_000,
    "words": "word " * 2_000,
    "emoji": "🚀👩‍👩‍👧‍👦🇩🇪 ☃️ \U0001f9ea 训练 e\u0301",
    "not characters": "\ufffe\uffff \ud800 \ue000 \u2028\u2029 \u0085",
    "quantities": '1e999 NaN -0 {"a": 1} 100% 5 GiB',
    "metrics": 'x"} 1\n# EOF\nfake{a="b"} 2 \\n \\"',
    "spreadsheet": '=HYPERLINK("https://evil.example") +1 -1 @SUM(A1)',
    "nothing": " \t\n\u200b\ufeff ",
}
"""Each by what it aims at."""

PLAIN = "plain"


def report_with(text: str, *, ours: bool = True) -> Report:
    """Return the report of two runs in which every name, param and message is `text`.

    Args:
        text: what is put everywhere.
        ours: whether words that gpureport itself writes are it as well: reasons, advice, kinds.
    """
    return build(
        [_run(text, place, gpus, ours=ours) for place, gpus in enumerate((2, 1))],
        title=text,
        command=f"gpureport report {text}" if ours else "gpureport report",
        gpu_hour_price=2.5,
        version="0.1.0",
    )


def _run(text: str, place: int, gpus: int, *, ours: bool) -> examples.Pair:
    name = f"{text} {place}"
    made = examples.run(f"run {place}", gpus=gpus, model=text, step=name, work=Work(amount=1000.0, unit=text))
    info = examples.with_gap(made)
    said = text if ours else "words of our own"
    quality = replace(
        info.quality,
        rejected=(Rejected(reason=said, rows=2, first_line=811),),
        absent_cells=(AbsentCells(column=text, reason=said, cells=info.quality.rows_kept),),
        notes=(said,),
        log_events=(LogEvent(kind="driver_message", at=info.started, line=3, device="gpu:0", text=text),),
    )
    devices = tuple(replace(device, driver=text, node=text or None) for device in info.devices)
    sources = tuple(replace(source, kind=said, locator=text) for source in info.sources)
    params = ((text, text), ("key", text))
    info = replace(info, name=name, quality=quality, devices=devices, sources=sources, params=params, tags=params)
    missing = replace(examples.NOT_JUDGED[0], reason=said, recording=said)
    return examples.pair(info, (_finding(said), examples.throttling("gpu:0", 100, 200)), (missing,))


def _finding(text: str) -> Finding:
    # fingerprints are made of bytes
    kind = text.encode(errors="ignore").decode()
    gap = examples.idle_gap("gpu:0", 10, 40, summary=text)
    evidence = (replace(gap.evidence[0], metric=text, statistic=text),)
    return replace(gap, kind=kind, cause=kind, recommendation=text, evidence=evidence, ruled_out=(text,))


def visible(text: str) -> str:
    """Return the beginning of what a reader must see of a text: no steering, no marks, plain spaces."""
    bare = display.clean(text).replace(display.GAP, " ")
    return unicodedata.normalize("NFC", " ".join(bare.split()))[:20].strip()
