"""Tables of runs with one GPU each stand in one table."""

from dataclasses import replace

from gpureport.report.formats import html
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import RunTable
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.merging import joined_tables
from gpureport.testing import Run
from tests.report import examples
from tests.report.test_several_runs import report


def single(name: str, gpus: int = 1) -> Run:
    """Return a run of few GPUs."""
    return examples.run(name, gpus=gpus)


def test_runs_of_one_gpu_are_rows_of_one_table() -> None:
    """Each by its label; the page and the text have one heading for all."""
    content = report(*(examples.pair(single(name)) for name in ("before", "then", "after")))
    (table,) = joined_tables.join_single_row_tables(content.gpus)
    assert [row.head.text for row in table.table.rows] == ["before", "then", "after"]
    assert (table.label, table.table.columns[0]) == ("all 3 runs", "Run")
    assert table.table.note == content.gpus[0].table.note
    assert html.render(content).count("GPUs of all 3 runs") == 1
    assert terminal.render(content).count("PER GPU") == 1


def test_gpus_that_differ_are_named() -> None:
    """Where one run had another GPU of the machine, each row says which."""
    pairs = [examples.pair(single("before")), examples.pair(single("after"))]
    first, second = report(*pairs).gpus
    row = replace(second.table.rows[0], head=Cell(text="GPU 3"))
    (table,) = joined_tables.join_single_row_tables((first, replace(second, table=replace(second.table, rows=(row,)))))
    assert [row.head.text for row in table.table.rows] == ["before, GPU\N{NO-BREAK SPACE}0", "after, GPU 3"]


def test_runs_of_several_gpus_keep_tables_of_their_own() -> None:
    """One run with two of them is enough; the first says what holds for all."""
    content = report(examples.pair(single("before")), examples.pair(single("after", 2)))
    assert joined_tables.join_single_row_tables(content.gpus) == content.gpus
    assert joined_tables.join_single_row_tables(content.gpus[:1]) == content.gpus[:1]


def held(label: str, reason: str, never_seen: str = "Never seen: x.") -> RunTable:
    """Return what held the clocks of a run: one reason."""
    row = Row(head=Cell(text=reason), cells=(Cell(text="normal"),))
    return RunTable(
        label=label,
        table=Table(
            columns=("Reason", "Kind"),
            numeric=(False,),
            rows=(row,),
            notes=("Shares overlap.", never_seen),
        ),
    )


def test_the_reason_that_held_a_clock_is_named() -> None:
    """Though it is the same in every run: a table of runs alone would not say what held them."""
    (table,) = joined_tables.join_single_row_tables(
        [held("before", "sw power cap, GPU 0"), held("after", "sw power cap, GPU 0")]
    )
    assert table.table.columns == ("Run, reason", "Kind")
    assert [row.head.text for row in table.table.rows] == ["before, sw power cap, GPU 0", "after, sw power cap, GPU 0"]
    assert table.table.note == "Shares overlap. Never seen: x."


def test_notes_that_differ_name_their_runs() -> None:
    """What one run never showed is not said of all."""
    runs = [held("a", "r"), held("b", "r", "Never seen: y."), held("c", "r")]
    (table,) = joined_tables.join_single_row_tables(runs)
    assert table.table.note == "Shares overlap. a and c: Never seen: x. b: Never seen: y."


def test_a_terminal_has_one_table_of_clocks_too() -> None:
    """One heading and one row a run; runs with several rows keep a table each, under their names."""
    content = report(examples.pair(single("a")), examples.pair(single("b")))
    text = terminal.render(replace(content, clocks=(held("a", "sw power cap"), held("b", "sw power cap"))))
    (heading,) = [line for line in text.splitlines() if line.startswith("WHAT HELD THE CLOCKS")]
    assert heading == "WHAT HELD THE CLOCKS"
    first = held("a", "sw power cap")
    two = replace(first, table=replace(first.table, rows=first.table.rows * 2))
    apart = terminal.render(replace(content, clocks=(two, held("b", "sw power cap"))))
    assert apart.count("WHAT HELD THE CLOCKS, ") == 2
