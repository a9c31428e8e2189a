"""Scenarios in which nobody has to act, most of which resemble one in which somebody has."""

from tests.truth.script import Memory, Part, Script
from tests.truth.setting import Setting


def steady(given: Setting) -> Script:
    return Script(parts=given.job(given.work(1100)), columns="full", clean=True)


def data_parallel(given: Setting) -> Script:
    return Script(parts=given.job(given.work(900, heat=0.7)), gpus=4, clean=True)


def busy_host(given: Setting) -> Script:
    return Script(parts=given.job(given.work(1000, cpu=93.0, core=99.0)), clean=True)


def power_capped(given: Setting) -> Script:
    return Script(parts=given.job(given.work(1000, heat=1.3)), columns="full", clean=True)


def hot(given: Setting) -> Script:
    card, work = given.card, given.work(1000, heat=0.8)
    watts = card.ready_watts + (0.94 * card.limit_watts - card.ready_watts) * 0.8
    kelvin = (card.slowdown_celsius - 4.5 - 27.0) * card.limit_watts / watts
    return Script(parts=given.job(work), kelvin=kelvin, columns="full", clean=True)


def locked_clock(given: Setting) -> Script:
    return Script(parts=given.job(given.work(900)), clock=0.75, clean=True)


def preallocated(given: Setting) -> Script:
    held = float(given.rng.choice([0.752, 0.93]))
    memory = Memory(first=held, grown=held, chunk=0.002)
    return Script(parts=given.job(given.work(900)), memory=memory, whole=("mem_prealloc",), clean=True)


def warm_up(given: Setting) -> Script:
    memory = Memory(first=0.18, grown=0.72, chunk=0.015)
    return Script(parts=given.job(given.work(1200)), memory=memory, columns="full", clean=True)


def longest_batch(given: Setting) -> Script:
    memory = Memory(first=0.3, grown=0.42, swing=0.3, chunk=0.004)
    return Script(parts=given.job(given.work(1300)), memory=memory, clean=True)


def small_model(given: Setting) -> Script:
    return Script(parts=given.job(given.work(800)), memory=Memory(first=0.05, grown=0.09), clean=True)


def long_start(given: Setting) -> Script:
    parts = (given.started(150, 260), given.work(900), given.over())
    return Script(parts=parts, clean=True)


def requests(given: Setting) -> Script:
    part = Part(seconds=given.long(1200), texture="requests", step=0.03, rate=9.0, heat=0.6, cpu=14.0)
    return Script(parts=(part,), memory=Memory(first=0.4, grown=0.45), trap=True)


def days_of_requests(given: Setting) -> Script:
    """A service with busy hours and quiet ones, in which seconds pass without a request."""
    part = Part(seconds=given.long(1500), texture="requests", step=0.05, rate=7.0, swing=0.97, heat=0.6, cpu=11.0)
    return Script(parts=(part,), memory=Memory(first=0.4, grown=0.45), trap=True)


def sliced(given: Setting) -> Script:
    """A GPU cut into instances, whose utilisation the driver does not give."""
    return Script(parts=given.job(given.work(900)), columns="full", absent=3.0, clean=True)


def retired_errors(given: Setting) -> Script:
    """Memory errors from before the run, a link that sleeps when idle, and a few cells without a value."""
    parts = given.job(given.work(500), given.pause(7, 12, "epoch"), given.work(500))
    return Script(parts=parts, columns="full", ecc=(3, 0), absent=0.004, trap=True)


def aliased(given: Setting) -> Script:
    """Steps of a second and more with waits of half a second between them, which coarse samples hit or miss."""
    step = float(given.rng.uniform(1.1, 1.8))
    return Script(parts=given.job(given.work(1100, step=step, duty=0.76, spread=0.15)), trap=True)
