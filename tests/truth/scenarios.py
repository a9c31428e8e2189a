"""Every scenario of the suite: healthy runs, runs that lose time, and faulty hardware."""

from collections.abc import Callable
from dataclasses import replace

from tests.truth.script import Memory, Part, Script, Setting


def served(seconds: float, **more: float) -> Script:
    part = Part(seconds=seconds, texture="requests", heat=0.6, **more)  # type: ignore[arg-type]  # fields of numbers
    return Script(parts=(part,), memory=Memory(first=0.4, grown=0.45), trap=True)


PLAIN: dict[str, Callable[[Setting], Script]] = {
    "steady": lambda given: Script(parts=given.job(given.work(1100)), columns="full", clean=True),
    "data_parallel": lambda given: Script(parts=given.job(given.work(900, heat=0.7)), gpus=4, clean=True),
    "busy_host": lambda given: Script(parts=given.job(given.work(1000, cpu=93.0, core=99.0)), clean=True),
    "power_capped": lambda given: Script(parts=given.job(given.work(1000, heat=1.3)), columns="full", clean=True),
    "locked_clock": lambda given: Script(parts=given.job(given.work(900)), clock=0.75, clean=True),
    "warm_up": lambda given: Script(
        parts=given.job(given.work(1200)),
        memory=Memory(first=0.18, grown=0.72, chunk=0.015),
        columns="full",
        clean=True,
    ),
    "longest_batch": lambda given: Script(
        parts=given.job(given.work(1300)), memory=Memory(first=0.3, grown=0.42, swing=0.3, chunk=0.004), clean=True
    ),
    "small_model": lambda given: Script(
        parts=given.job(given.work(800)), memory=Memory(first=0.05, grown=0.09), clean=True
    ),
    "long_start": lambda given: Script(parts=(given.started(150, 260), given.work(900), given.over()), clean=True),
    "requests": lambda given: served(given.long(1200), step=0.03, rate=9.0, cpu=14.0),
    # busy hours and quiet ones, in which seconds pass without a request
    "days_of_requests": lambda given: served(given.long(1500), step=0.05, rate=7.0, swing=0.97, cpu=11.0),
    # a GPU cut into instances, whose utilisation the driver does not give
    "sliced": lambda given: Script(parts=given.job(given.work(900)), columns="full", absent=3.0, clean=True),
    "stale_process": lambda given: Script(
        parts=(given.started(), given.work(500), given.over(200, 260)),
        memory=Memory(kept=0.9),
        whole=("zombie_memory",),
    ),
    "full_memory": lambda given: Script(
        parts=given.job(given.work(1200)), memory=Memory(first=0.5, grown=0.975, chunk=0.004), whole=("mem_pressure",)
    ),
    "failing_fan": lambda given: Script(parts=given.job(given.work(1100)), kelvin=58.0, fails=0.4),
    "narrow_link": lambda given: Script(
        parts=given.job(given.work(700)), lanes=4, columns="full", whole=("pcie_degraded",)
    ),
    # that memory could not correct, in the middle of the run
    "memory_errors": lambda given: Script(
        parts=given.job(given.work(700)), ecc=(1, 2), columns="full", whole=("ecc_error",)
    ),
}
"""Scenarios that an expression tells."""


def hot(given: Setting) -> Script:
    card, work = given.card, given.work(1000, heat=0.8)
    watts = card.ready_watts + (0.94 * card.limit_watts - card.ready_watts) * 0.8
    kelvin = (card.slowdown_celsius - 4.5 - 27.0) * card.limit_watts / watts
    return Script(parts=given.job(work), kelvin=kelvin, columns="full", clean=True)


def preallocated(given: Setting) -> Script:
    held = float(given.rng.choice([0.752, 0.93]))
    memory = Memory(first=held, grown=held, chunk=0.002)
    return Script(parts=given.job(given.work(900)), memory=memory, whole=("mem_prealloc",), clean=True)


def retired_errors(given: Setting) -> Script:
    """Memory errors from before the run, a link that sleeps when idle, and a few cells without a value."""
    parts = given.job(given.work(500), given.pause(7, 12), given.work(500))
    return Script(parts=parts, columns="full", ecc=(3, 0), absent=0.004, trap=True)


def aliased(given: Setting) -> Script:
    """Steps of a second and more with waits of half a second between them, which coarse samples hit or miss."""
    step = float(given.rng.uniform(1.1, 1.8))
    return Script(parts=given.job(given.work(1100, step=step, duty=0.76, spread=0.15)), trap=True)


def starved_by_cpu(given: Setting) -> Script:
    """Loader processes that cannot keep up, after a while in which they could."""
    duty = float(given.rng.uniform(0.3, 0.55))
    late = given.work(520, label="cpu_bound", duty=duty, cpu=91.0, core=99.0)
    return Script(parts=given.job(given.work(400), late, given.work(300)))


def starved_by_storage(given: Setting) -> Script:
    late = given.work(520, label="io_bound", duty=0.38, spread=0.9, cpu=22.0, iowait=34.0)
    return Script(parts=given.job(given.work(400), late, given.work(250)))


def checkpoints(given: Setting) -> Script:
    every = given.long(105)
    parts: list[Part] = []
    for _ in range(11):
        parts += [replace(given.work(100), seconds=round(every * given.rng.uniform(0.99, 1.01), 1))]
        parts += [given.pause(8, 12)]
    starts = [sum(part.seconds for part in parts[: place + 1]) for place in range(0, len(parts), 2)]
    period = (starts[-1] - starts[0]) / (len(starts) - 1)
    return Script(parts=given.job(*parts, given.work(60)), gpus=2, period=period)


def irregular_pauses(given: Setting) -> Script:
    parts: list[Part] = []
    for _ in range(7):
        parts += [given.work(float(given.rng.exponential(110) + 25)), given.pause(6, 50)]
    return Script(parts=given.job(*parts, given.work(90)), columns="shuffled")


def hanging_collective(given: Setting) -> Script:
    """Three ranks that spin in a collective while the fourth has died; then all are started anew."""
    before, after = given.work(350), given.work(300)
    hang = Part(seconds=given.long(330), label="hollow_util", texture="spin", heat=0.03, cpu=8.0, core=100.0)
    parts = given.job(before, hang, after)
    dead = replace(hang, label="", texture="still")
    own = tuple(dead if part is hang else part for part in parts)
    return Script(parts=parts, own={2: own}, gpus=4)


def one_rank_waits(given: Setting) -> Script:
    late = given.work(700)
    odd = replace(late, label="imbalance", duty=0.55, spread=0.3)
    parts = given.job(given.work(300), late)
    return Script(parts=parts, own={3: tuple(odd if part is late else part for part in parts)}, gpus=4)


def unused(given: Setting) -> Script:
    parts = given.job(given.work(900))
    nothing = Part(seconds=sum(part.seconds for part in parts), label="unused_gpu", texture="still")
    return Script(parts=parts, own={3: (nothing,)}, gpus=4)


def leak(given: Setting) -> Script:
    work = given.work(1300)
    memory = Memory(first=0.25, grown=0.4, leak=0.28 / work.seconds, chunk=0.008)
    return Script(parts=given.job(work), memory=memory, whole=("mem_leak",), columns="full")


def power_brake(given: Setting) -> Script:
    brake = [given.work(70, label="hw_throttle", slow=0.32) for _ in range(2)]
    parts = given.job(given.work(350), brake[0], given.work(250), brake[1], given.work(200))
    return Script(parts=parts)


def torn_log(given: Setting) -> Script:
    """Stretches without samples and cells without values, pauses between them."""
    parts = [part for _ in range(4) for part in (given.work(220), given.pause(9, 25))]
    holes = ((0.23, 0.07), (0.61, 0.1))
    return Script(parts=given.job(*parts, given.work(150)), holes=holes, absent=0.02, gpus=2)


def slow_card(given: Setting) -> Script:
    work = given.work(900)
    slow = replace(work, label="slow_gpu", held=float(given.rng.uniform(0.6, 0.85)))
    parts = given.job(work)
    return Script(parts=parts, own={2: tuple(slow if part is work else part for part in parts)}, gpus=4)


def unsaid_slowdown(given: Setting) -> Script:
    """A clock that falls in the middle of the run, and nothing says why."""
    parts = given.job(given.work(600), given.work(600, held=float(given.rng.uniform(0.6, 0.8))))
    return Script(parts=parts, whole=("unexplained_change",))
