"""Scenarios in which the machine is at fault, or the log."""

from dataclasses import replace

from tests.truth.script import Script
from tests.truth.setting import Setting


def failing_fan(given: Setting) -> Script:
    return Script(parts=given.job(given.work(1100)), kelvin=58.0, fails=0.4)


def failing_fan_unsaid(given: Setting) -> Script:
    return Script(parts=given.job(given.work(1200)), kelvin=58.0, fails=0.45, columns="no_reasons")


def power_brake(given: Setting) -> Script:
    brake = [given.work(70, label="hw_throttle", slow=0.32) for _ in range(2)]
    parts = given.job(given.work(350), brake[0], given.work(250), brake[1], given.work(200))
    return Script(parts=parts)


def low_limit(given: Setting) -> Script:
    return Script(parts=given.job(given.work(900)), limit=0.66, columns="full", whole=("power_limited",))


def narrow_link(given: Setting) -> Script:
    return Script(parts=given.job(given.work(700)), lanes=4, columns="full", whole=("pcie_degraded",))


def memory_errors(given: Setting) -> Script:
    """Errors that memory could not correct, in the middle of the run."""
    return Script(parts=given.job(given.work(700)), ecc=(1, 2), columns="full", whole=("ecc_error",))


def fallen_off(given: Setting) -> Script:
    return Script(parts=given.job(given.work(800)), gpus=3, lost=(2, 0.55), columns="full", whole=("gpu_lost",))


def torn_log(given: Setting) -> Script:
    """Stretches without samples and cells without values, pauses between them."""
    parts = [part for _ in range(4) for part in (given.work(220), given.pause(9, 25, "unknown"))]
    holes = ((0.23, 0.07), (0.61, 0.1))
    return Script(parts=given.job(*parts, given.work(150)), holes=holes, absent=0.02, gpus=2)


def bare_log(given: Setting) -> Script:
    parts = [part for _ in range(5) for part in (given.work(180), given.pause(7, 30, "unknown"))]
    return Script(parts=given.job(*parts, given.work(120)), columns="bare", host=False)


def slow_card(given: Setting) -> Script:
    work = given.work(900)
    slow = replace(work, label="slow_gpu", held=float(given.rng.uniform(0.6, 0.85)))
    parts = given.job(work)
    return Script(parts=parts, own={2: tuple(slow if part is work else part for part in parts)}, gpus=4)


def unsaid_slowdown(given: Setting) -> Script:
    """A clock that falls in the middle of the run, and nothing says why."""
    parts = given.job(given.work(600), given.work(600, held=float(given.rng.uniform(0.6, 0.8))))
    return Script(parts=parts, whole=("unexplained_change",))
