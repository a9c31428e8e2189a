"""`gpureport demo`."""

from dataclasses import replace

from gpureport.cli import output
from gpureport.cli.messages import print_note
from gpureport.cli.options import Options
from gpureport.cli.reading.analyses import analyze_runs
from gpureport.cli.reading.steps import read_steps
from gpureport.comparison.factors import parse_factors
from gpureport.places import find_shipped_folder

_CHAIN = "recorded/training_steps"
_TITLE = "Sample logs, recorded"
_WORK = (32768.0, "images")
"""What each of the 15 runs did, as the README beside them says."""


def demo(options: Options) -> None:
    """Compare the steps of a sample, in a report that is printed and written."""
    output.check_outputs(options)
    chain = find_shipped_folder("sample_logs") / _CHAIN
    steps = tuple(str(path) for path in sorted(chain.iterdir()) if path.is_dir())
    own = replace(options, by=parse_factors("folder"), work=(_WORK,))
    content = output.build_report(analyze_runs(read_steps(steps, own), own), own, title=_TITLE)
    output.print_report(content, options)
    output.write_report(content, options)
    print_note("Try it on your log: gpureport analyze gpu.csv")
    print_note(f"More samples, most of them generated: {chain.parents[1]}")
