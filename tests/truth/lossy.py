"""Scenarios in which the job itself loses time: input, pauses, waiting ranks, unused devices."""

from dataclasses import replace

from tests.truth.script import Memory, Part, Script
from tests.truth.setting import Setting


def starved_by_cpu(given: Setting) -> Script:
    """Loader processes that cannot keep up, after a while in which they could."""
    duty = float(given.rng.uniform(0.3, 0.55))
    late = given.work(520, label="cpu_bound", duty=duty, cpu=91.0, core=99.0)
    return Script(parts=given.job(given.work(400), late, given.work(300)))


def starved_in_bursts(given: Setting) -> Script:
    """Batches that come in bursts, with seconds of waiting between them."""
    late = given.work(700, label="cpu_bound", step=0.9, duty=0.4, spread=1.1, cpu=88.0, core=99.0)
    return Script(parts=given.job(given.work(350), late), gpus=2, columns="shuffled")


def starved_by_storage(given: Setting) -> Script:
    late = given.work(520, label="io_bound", duty=0.38, spread=0.9, cpu=22.0, iowait=34.0)
    return Script(parts=given.job(given.work(400), late, given.work(250)))


def one_core(given: Setting) -> Script:
    late = given.work(600, label="cpu_bound_single", duty=0.42, spread=0.3, cpu=9.0, core=99.5)
    return Script(parts=given.job(given.work(350), late))


def both_low(given: Setting) -> Script:
    late = given.work(900, label="underutilised", step=0.1, duty=0.36, spread=0.3, cpu=14.0, core=52.0)
    return Script(parts=given.job(late), columns="no_power")


def both_low_in_steps(given: Setting) -> Script:
    late = given.work(1100, label="underutilised", step=1.4, duty=0.42, spread=0.25, cpu=14.0, core=52.0)
    return Script(parts=given.job(late))


def unexplained(given: Setting) -> Script:
    late = given.work(900, label="underutilised", step=0.15, duty=0.4, spread=0.4)
    return Script(parts=given.job(late), host=False)


def checkpoints(given: Setting) -> Script:
    every = given.long(105)
    parts: list[Part] = []
    for _ in range(11):
        parts += [replace(given.work(100), seconds=round(every * given.rng.uniform(0.99, 1.01), 1))]
        parts += [given.pause(8, 12, "checkpoint")]
    starts = [sum(part.seconds for part in parts[: place + 1]) for place in range(0, len(parts), 2)]
    period = (starts[-1] - starts[0]) / (len(starts) - 1)
    return Script(parts=given.job(*parts, given.work(60)), gpus=2, period=period)


def irregular_pauses(given: Setting) -> Script:
    parts: list[Part] = []
    for _ in range(7):
        parts += [given.work(float(given.rng.exponential(110) + 25)), given.pause(6, 50, "unknown")]
    return Script(parts=given.job(*parts, given.work(90)), columns="shuffled")


def epoch_ends(given: Setting) -> Script:
    epoch = given.work(240)
    rests = [given.pause(11, 13, "epoch", cpu=55.0) for _ in range(5)]
    parts = [part for rest in rests for part in (epoch, rest)]
    period = epoch.seconds + sum(rest.seconds for rest in rests[:-1]) / (len(rests) - 1)
    return Script(parts=given.job(*parts, epoch), columns="full", period=period)


def hanging_collective(given: Setting) -> Script:
    """Three ranks that spin in a collective while the fourth has died; then all are started anew."""
    before, after = given.work(350), given.work(300)
    hang = Part(seconds=given.long(330), label="hollow_util", texture="spin", heat=0.03, cpu=8.0, core=100.0)
    parts = given.job(before, hang, after)
    dead = replace(hang, label="", texture="still", cause="hang")
    own = tuple(dead if part is hang else part for part in parts)
    return Script(parts=parts, own={2: own}, gpus=4)


def launch_bound(given: Setting) -> Script:
    late = given.work(600, label="hollow_util", heat=0.1, core=99.0)
    return Script(parts=given.job(given.work(350), late), columns="full")


def one_rank_waits(given: Setting) -> Script:
    late = given.work(700)
    odd = replace(late, label="imbalance", duty=0.55, spread=0.3)
    parts = given.job(given.work(300), late)
    return Script(parts=parts, own={3: tuple(odd if part is late else part for part in parts)}, gpus=4)


def straggler(given: Setting) -> Script:
    wait = given.work(700, heat=0.4)
    odd = replace(wait, label="imbalance", heat=0.9)
    parts = given.job(given.work(300, heat=0.8), wait)
    return Script(parts=parts, own={1: tuple(odd if part is wait else part for part in parts)}, gpus=4)


def unused(given: Setting) -> Script:
    parts = given.job(given.work(900))
    nothing = Part(seconds=sum(part.seconds for part in parts), label="unused_gpu", texture="still")
    return Script(parts=parts, own={3: (nothing,)}, gpus=4)


def stale_process(given: Setting) -> Script:
    parts = (given.started(), given.work(500), given.over(200, 260))
    return Script(parts=parts, memory=Memory(kept=0.9), whole=("zombie_memory",))


def leak(given: Setting) -> Script:
    work = given.work(1300)
    memory = Memory(first=0.25, grown=0.4, leak=0.28 / work.seconds, chunk=0.008)
    return Script(parts=given.job(work), memory=memory, whole=("mem_leak",), columns="full")


def full_memory(given: Setting) -> Script:
    memory = Memory(first=0.5, grown=0.975, chunk=0.004)
    return Script(parts=given.job(given.work(1200)), memory=memory, whole=("mem_pressure",))
