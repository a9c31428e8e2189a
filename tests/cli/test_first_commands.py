"""What `gpureport` alone says."""

from tests.cli.program import Program


def test_it_shows_the_ways_to_something(gpureport: Program) -> None:
    done = gpureport()
    assert (done.code, done.err) == (0, "")
    ways = ("gpureport record -- COMMAND", "gpureport report . -o report.html", "gpureport demo", "gpureport --help")
    assert [way for way in ways if way not in done.out] == []
