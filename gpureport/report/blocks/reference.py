"""What is for reference, as blocks that a page folds away and paper appends."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.findings import Outcome
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.report_content import Answers, GpuTable, Judgement, Report, RunTable
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.wording import display
from gpureport.report.wording.display import join
from gpureport.report.wording.words import group_holders, list_labels

_MOST_VARIANTS, _MOST_ROWS = 3, 24
"""Texts that runs have under one name, above which they stand in a table; rows of a table on short paper."""
# the label of a run or a comparison, and what is said of it
Said = tuple[str, Sequence[Fact]]


def list_reference(report: Report) -> Iterator[Block]:
    """Yield the sections in their order, each beginning with a block that has an anchor."""
    shown = [*_list_sections(report)]
    yield from shown
    # terms are explained where some heading uses them
    named = [text for block in shown for fact in block.facts for text in (fact.name, fact.text)]
    named += [name for block in shown if block.table for name in block.table.columns]
    yield from _method(report, " ".join([*named, *(block.title for block in shown)]).lower())


def _list_sections(report: Report) -> Iterator[Block]:
    yield from report.comparison.reference if report.comparison else ()
    yield from _gpu_time(report)
    yield from _gpus(report)
    forms = Form.FULL if report.several else Form.EVERY_PAGE
    # what the table of GPUs has need not be said again
    shown = {cell.text for run in report.gpus for row in run.table.rows for cell in row.cells if report.several}
    said = [(run.label, [fact for fact in run.facts if fact.text not in shown]) for run in report.spending]
    facts, table = split_facts(said)
    yield Block(forms=forms, anchor="spending", title="Energy and cost", table=table, facts=facts)
    yield from _not_assessed(report.judgement)
    yield _answers(report.answers, several=report.several)
    yield from _checklist(report)
    yield from _quality(report)
    notes = [Fact(name="", text=note) for note in report.verdict.notes]
    yield Block(forms=Form.EVERY_PAGE, anchor="notes", title="Also worth knowing", facts=notes)


def merge_facts(runs: Sequence[Said]) -> list[Fact]:
    """Return what is said of runs by its name, each statement once, with its runs where these are not all."""
    holders = group_holders((fact, label) for label, facts in runs for fact in facts)
    said = group_holders(
        (fact.name, fact.text if len(labels) == len(runs) else f"{list_labels(labels)}: {fact.text}")
        for fact, labels in holders.items()
    )
    return [Fact(name=name, text=text) for name, texts in said.items() for text in texts]


def split_facts(runs: Sequence[Said]) -> tuple[list[Fact], Table | None]:
    """Return what runs have in common as statements, and what each has of its own as a table with a row a run."""
    said = [(label, {fact.name: fact.text for fact in facts}) for label, facts in runs]
    names = dict.fromkeys(name for _, named in said for name in named)
    own = [name for name in names if len({named.get(name) for _, named in said}) > _MOST_VARIANTS]
    shared = [(label, [fact for fact in facts if fact.name not in own]) for label, facts in runs]
    rows = ([label, *(named.get(name, "") for name in own)] for label, named in said)
    return merge_facts(shared), build_table(("Run", *own), rows, in_words=own) if own else None


def merge_texts(runs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    said = [(label, [Fact(name="", text=text) for text in texts if text]) for label, texts in runs]
    return [fact.text for fact in merge_facts(said)]


def join_tables(runs: Sequence[GpuTable | RunTable]) -> list[tuple[str, Table]]:
    """Return the tables of runs with their labels; those of a row each and of the same columns as one, a row a run."""
    tables = [run.table for run in runs]
    if len(runs) == 1 or len({each.columns for each in tables}) != 1 or any(len(each.rows) != 1 for each in tables):
        return [(run.label, run.table) for run in runs]
    heads = [each.rows[0].head.text for each in tables]
    several = len({*heads}) > 1
    rows = tuple(
        replace(run.table.rows[0], head=Cell(text=run.label, small=head if several else ""))
        for run, head in zip(runs, heads, strict=True)
    )
    notes = tuple(merge_texts([(run.label, run.table.notes) for run in runs]))
    columns = ("Run" if several else f"Run, {heads[0]}", *tables[0].columns[1:])
    return [("", replace(tables[0], columns=columns, rows=rows, notes=notes))]


# --- runs and GPUs


def _gpu_time(report: Report) -> Iterator[Block]:
    part, title = report.comparison, "Every run" if report.several else "GPU time in figures"
    if part:
        # charts of groups by two settings leave out what the table has
        table = part.estimates if part.grouped else None
        yield Block(forms=Form.PAGE, anchor="runs", title=title, texts=[part.legend], charts=part.charts, table=table)
        yield Block(forms=Form.TEXT, title=title, table=part.estimates)
        title = "GPU time by class"
    level = 3 if part else 2
    yield Block(anchor="" if part else "runs", title=title, level=level, table=report.gpu_time_table)


def _gpus(report: Report) -> Iterator[Block]:
    several = report.several
    apart = [(run.label if several else "", line) for run in report.gpus for line in run.outliers]
    absent = [] if report.gpus else ["No GPU was recorded."]
    yield Block(
        forms=Form.EVERY_PAGE,
        anchor="gpus",
        title="Per GPU",
        warnings=[*(join(*each, by=": ") for each in apart), *absent],
        texts=merge_texts([(run.label, [run.same]) for run in report.gpus if not run.outliers]),
    )
    count = sum(len(run.table.rows) for run in report.gpus)
    is_long = count > _MOST_ROWS
    for label, table in join_tables(report.gpus):
        forms = Form.FULL if is_long else Form.EVERY_PAGE
        yield Block(forms=forms, title=label if several else "", level=3, table=table)
    if is_long:
        yield Block(forms=Form.PAPER, texts=[f"The table of {count} rows comes with --detail full."])
    told = {"What held the clocks": report.clocks, "Stages": report.stages}
    for title, tables in told.items():
        for label, table in join_tables(tables):
            yield Block(title=title, label=label if several else "", level=3, table=table)


# --- what could not be checked, data, method


def _not_assessed(judgement: Judgement) -> Iterator[Block]:
    columns = ("Not assessed", "Why", "Needs")
    rows = [
        (Cell(text=", ".join(line.kinds), small=line.where), line.reason, line.recording) for line in judgement.lines
    ]
    table = build_table(columns, rows, in_words=columns)
    forms, command = Form.EVERY_PAGE, judgement.command
    advice = f"{judgement.advice} Where gpureport cannot be installed, run instead:" if command else judgement.advice
    texts = [judgement.sentence, advice]
    title = "What could not be checked"
    yield Block(forms=Form.MARKDOWN | forms, anchor="not-assessed", title=title, texts=texts)
    yield Block(forms=forms, code=[command, *judgement.other_commands] if command else ())
    yield Block(forms=forms, table=table if rows else None)
    yield Block(forms=forms, facts=[Fact(name="", text=limit) for limit in judgement.limits])


def _answers(answers: Sequence[Answers], *, several: bool) -> Block:
    """Return the checks by what became of them: of one run with the findings, of several in how many runs."""
    held = group_holders(((line.outcome, line.title, line.group), line) for run in answers for line in run.lines)
    kinds: dict[str, list[str]] = {outcome: [] for outcome in Outcome}
    for (outcome, title, group), lines in held.items():
        about = [group, "in part" if lines[0].reason and lines[0].cards else ""]
        about += lines[0].cards if not several else [f"{len(lines)} runs"] if len(lines) < len(answers) else []
        kinds[outcome].append(f"{title} ({join(*about, by=', ')})" if any(about) else title)
    words = {line.outcome: display.raise_first(line.outcome_text) for run in answers for line in run.lines}
    facts = [Fact(name=words[outcome], text=", ".join(named)) for outcome, named in kinds.items() if named]
    texts = [] if several else [f"{run.summary}." for run in answers]
    return Block(title="Every check", level=3, texts=texts, facts=facts)


def _checklist(report: Report) -> Iterator[Block]:
    """Yield the answers for the last run, and of others those that differ from all before."""
    held = group_holders((run.lines, run.label) for run in reversed(report.checklists))
    shown: set[object] = set()
    for lines, labels in held.items():
        facts = []
        for line in lines:
            if line not in shown:
                needs = line.recording and f"Needs {line.recording}."
                facts.append(Fact(name=line.title, text=join(f"{line.state_text}: {line.reason}", needs, by=" ")))
        whose = list_labels(labels[::-1]) if len(report.checklists) > 1 else ""
        if shown:
            yield Block(title=whose, level=4, facts=facts)
        else:
            yield Block(anchor="checklist", title="Checklist", label=whose, facts=facts)
        shown.update(lines)


def _quality(report: Report) -> Iterator[Block]:
    runs, several = report.quality, report.several
    facts, table = split_facts([(run.label, run.facts) for run in runs])
    notes, forms = merge_texts([(run.label, run.notes) for run in runs]), Form.EVERY_PAGE
    yield Block(forms=forms, anchor="quality", title="Data quality", warnings=notes, facts=facts, table=table)
    for run in runs:
        texts = [*(event.sentence for event in run.events), run.more_events]
        told = [Fact(name="", text=text) for text in texts if text]
        label = run.label if several else ""
        yield Block(forms=forms, title="What the log says happened", label=label, level=3, facts=told)


def _method(report: Report, words: str) -> Iterator[Block]:
    method, told = report.method, {row.title for row in report.rows}
    paper, made = Form.PAGE | Form.PAPER, "This report was made with"
    terms = [fact for fact in method.definitions if fact.name.lower() in words]
    yield Block(forms=paper, anchor="method", title="Method", texts=[made], code=[method.command])
    yield Block(forms=paper, facts=method.versions)
    yield Block(forms=Form.PAGE, title="Inputs", level=3, table=method.inputs)
    yield Block(forms=Form.PAGE, title="What the words mean", level=3, facts=terms)
    kinds = [fact for fact in method.kinds if fact.name in told]
    more = ["gpureport explain CHECK --detail full says it of every check, with its limits."] if kinds else []
    yield Block(forms=Form.PAGE, title="When this is found", level=3, texts=more, facts=kinds)
