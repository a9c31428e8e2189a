"""How sure a headline of steps is."""

import numpy as np

from gpureport.recording import Work
from gpureport.report.sections.head.headlines.step_headline import describe_certainty
from tests.comparison.runs import compared, sampled


def test_an_interval_whose_ends_read_alike_is_still_one() -> None:
    """Three runs a side that hardly scatter."""
    runs = [
        sampled(
            f"{step}-{number}",
            step=step,
            util=np.full(count, 90.0),
            work=Work(amount=1000 + number / 10, unit="steps"),
        )
        for step, count in (("slow", 900), ("fast", 300))
        for number in range(3)
    ]
    assert describe_certainty(compared(*runs)) == "67% less (3 runs a step)"
