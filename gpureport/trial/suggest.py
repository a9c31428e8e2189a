"""Suggests a trial: the settings that the advice on a run would change, and the command that tries them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from gpureport.analysis.advice import choose
from gpureport.analysis.advice.choose import STEPS, TRIES, RunFacts, Step
from gpureport.analysis.job.params import read_params
from gpureport.analysis.results import NOTABLE, Analysis, measure_pauses_ratio, sum_seconds_by_class
from gpureport.record_folder import GPU_LOG, RUN_FILE
from gpureport.recorder.job_params import find_settings
from gpureport.recording import Run
from gpureport.redaction import HIDDEN
from gpureport.regular_files import path_exists
from gpureport.trial.plan import WORDS, split_command

_WORKERS, _MOST = "loader_workers", 3
"""A step of advice. Maximum numbers of settings to suggest and of names in a note."""
_FULL_MEMORY, _TILE, _FEWEST = 0.9, 8, 2
"""The share of GPU memory that a batch may fill, the number of samples that divides its size, and the smallest
value to try."""
_HAS_BF16 = (8, 0)
_MAY_CHANGE_RESULTS = {"batch", "precision"}


def suggest(analyses: Sequence[Analysis]) -> tuple[str, list[str]]:
    """Return the command line of the trial that a run's advice suggests, and notes that end with their codes.

    Without such a trial, the line is empty, and the first note gives the reason.
    """
    run = analyses[0].run
    command, places = split_command(run.tags), [Path(each.locator).resolve().parent for each in run.sources]
    folder = next((place for place in places if path_exists(place / RUN_FILE)), None)
    options, words = _find_options(command), [_move(word, run, folder) if folder else word for word in command]
    tried, notes = dict[str, tuple[str, ...]](), dict[str, list[str]]()
    for step, facts in _list_steps(analyses[0]):
        settings = [change.setting for change in step.changes] if step.tries else []
        given = [setting for setting in settings if setting in options]
        if not given:
            missing = "not_on_command_line" if command else "no_command"
            name, code = (settings[0], missing) if settings else (step.title, "no_setting")
            notes.setdefault(code, []).append(name.replace("_", " "))
        for setting in given:
            _, name, value = options[setting][0]
            values = _list_values(step, setting, name, value, facts)
            if not values:
                why = " (one per core)" if step is STEPS[_WORKERS] and value.isdecimal() else ""
                notes.setdefault("no_other_value", []).append(f"{name}={value}{why}")
            elif name not in tried and len(tried) < _MOST:
                tried[name] = (value, *values)
                for place in (each[0] for each in options[setting] if each[1:] == (name, value)):
                    words[place] = f"{words[place].removesuffix(value)}{{{name}}}"
                notes |= {"quality_unknown": []} if setting in _MAY_CHANGE_RESULTS else {}
    if len(analyses) > 1:
        tried, notes = {}, {"several_runs": []}
    elif not (tried or notes):
        notes["no_advice"] = []
    if tried and any(HIDDEN in word for word in command):
        notes["hidden_secrets"] = []
    job = next((PurePath(word).name for word in command if word.endswith(".py")), "the job")
    listed = {code: ", ".join([*dict.fromkeys(names)][:_MOST]) for code, names in notes.items()}
    sets = [f"--set {shlex.quote(name + '=' + ','.join(values))}" for name, values in tried.items()]
    sets += ["--host-only"] if folder and not any(folder.glob(f"{GPU_LOG}*")) else []
    line = " ".join(["gpureport try -o trial", *sets, "--", *map(_quote, words)]) if tried else ""
    said = WORDS["suggestion"].items()
    return line, [f"{text.format(names=listed[code], job=job)} ({code})" for code, text in said if code in listed]


def _move(word: str, run: Run, folder: Path) -> str:
    """Replace the path of a file in a run's folder, so that each run of a trial writes its own."""
    start, mark, name = word.rpartition("=")
    path = Path(name).resolve()
    # what the run read is older
    is_own = path.stat().st_mtime * 1e6 >= run.started if path_exists(path) else "/" in name
    own = PurePath("{folder}", path.relative_to(folder)) if name and is_own and path.is_relative_to(folder) else name
    return f"{start}{mark}{own}"


def _list_steps(analysis: Analysis) -> Iterator[tuple[Step, RunFacts]]:
    """Yield the advised steps in the order of the findings, each with the facts that led to it."""
    unjudged = {each.kind for each in analysis.not_judged}
    known = choose.gather_facts(analysis.run, analysis.statistics, analysis.findings, unjudged)
    for finding in analysis.findings:
        facts = choose.adapt_facts(known, finding)
        yield from ((STEPS[each.name], facts) for each in finding.steps)
        # the advice leaves out more workers if there is one per core
        is_taken = _WORKERS in choose.list_steps(finding) and STEPS[_WORKERS].is_taken(facts)
        yield from [(STEPS[_WORKERS], facts)] if is_taken else []
    # short pauses may be waits for data
    pauses = measure_pauses_ratio(sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time))
    if pauses >= NOTABLE and (more := choose.choose_workers_trial(known)):
        yield STEPS[more.name], known


def _find_options(command: Sequence[str]) -> dict[str, list[tuple[int, str, str]]]:
    """Return the position, name and value of each option for a setting, unless the command contradicts itself."""
    options = [*find_settings(command)]
    stated = read_params((name, value) for _, name, value in options)
    found: dict[str, list[tuple[int, str, str]]] = {setting: [] for setting in stated}
    for place, name, value in options:
        for setting in read_params([(name, value)]).keys() & stated.keys():
            if command[place].endswith(value):
                found[setting].append((place, re.split(r"[./]", name)[-1], value))
    return {setting: places for setting, places in found.items() if places}


def _list_values(step: Step, setting: str, name: str, value: str, facts: RunFacts) -> list[str]:
    if step.tries in TRIES:
        known = TRIES["on"] | TRIES[step.tries]
        own = known.get(f"{name}={value}") or known.get(value, [])
        has_bf16 = facts.compute_capability is None or facts.compute_capability >= _HAS_BF16
        return own[:1] if has_bf16 else own[-1:]
    if not value.isdecimal():
        return []
    now = int(value)
    if step.tries == "halved":
        return [str(each) for each in dict.fromkeys((now // 2, now // 4)) if each]
    most = float(max(4 * now, 2 * _FEWEST))
    if setting == "workers":
        most = facts.most_workers if facts.cores or facts.job_hardly_uses_cpu else max(2 * now, facts.most_workers)
    elif setting == "batch":
        most = now * _FULL_MEMORY / facts.gpu_memory if facts.gpu_memory and not facts.preallocated else 2 * now
        most -= most % _TILE if most >= _TILE else 0
    first = max(2 * now, _FEWEST)
    return [str(each) for each in dict.fromkeys(int(min(each, most)) for each in (first, 2 * first)) if each > now]


def _quote(word: str) -> str:
    """Quote a word for the shell, except for the braces around a setting's name."""
    plain = re.sub(r"\{(\w+)\}", r"\1", word)
    return word if shlex.quote(plain) == plain else shlex.quote(word)
