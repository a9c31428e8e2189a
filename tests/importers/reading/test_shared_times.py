"""To which of several runs a host log belongs."""

from pathlib import Path

from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.reading.run_sources import find_source_runs
from gpureport.importers.reading.shared_times import NO_SHARED_TIME, OTHER_ZONE
from tests.importers.written_logs import HEADER, row

_VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
"""


def write_folder(folder: Path, day: str) -> None:
    """Write two runs half an hour apart, and a log of the machine that names UTC."""
    for name, start in (("a", 0), ("b", 1800)):
        lines = "\n".join([HEADER, *(row(start + second) for second in range(60)), ""])
        (folder / f"{name}.csv").write_text(lines)
    host = (
        f" 5  0  0 21021292 112652 3277128 0 0 292 759 277 755 43 4 53 0 0 {day} 09:00:{s:02d}\n" for s in range(60)
    )
    (folder / "host.txt").write_text(_VMSTAT + "".join(host))


def test_a_zone_that_only_the_host_log_names_is_the_reason(tmp_path: Path) -> None:
    """The times cannot be compared, which is not to say that they lie apart; with the zone the log finds its run."""
    write_folder(tmp_path, "2026-03-14")
    assert find_source_runs([tmp_path]).unused == {tmp_path / "host.txt": OTHER_ZONE}
    found = find_source_runs([tmp_path], options=ReadOptions(tz="UTC"))
    assert not found.unused
    assert [len(inputs) for inputs in found.runs[0]] == [2, 1]


def test_a_log_of_another_day_shares_no_time(tmp_path: Path) -> None:
    """Its times can be compared, and lie apart."""
    write_folder(tmp_path, "2026-03-15")
    found = find_source_runs([tmp_path], options=ReadOptions(tz="UTC"))
    assert found.unused == {tmp_path / "host.txt": NO_SHARED_TIME}
