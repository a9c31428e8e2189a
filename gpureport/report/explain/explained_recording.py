"""What to record, in words: the one command, and the raw ones for those who cannot install it."""

from gpureport import record_folder, recording_advice
from gpureport.recording_advice import COUNTER_FIELDS, RECORD
from gpureport.report.model.shapes import Explanation, Fact, Section

_FILES = {
    record_folder.GPU_LOG: "the GPUs, by nvidia-smi",
    record_folder.DMON_LOG: "copies over PCIe; on Hopper and newer also how much of the GPU works",
    record_folder.HOST_LOG: "CPU, waiting for storage, memory, disks, network, and the processes of the job",
    record_folder.RUN_FILE: "the command without its secrets, versions, time zone, exit code",
}
_ADVICE = {
    "Interval": "One second. utilization.gpu covers at most the last second, so at 5 s a row is a spot check.",
    "Time": "nvidia-smi and sar write local time without a zone. Name it with --tz.",
    "-f": "overwrites an existing file without asking. Name a new one for every run.",
    "The end": "Stop a logger with Ctrl-C or kill -INT. Kill -9 loses the last lines. In a script, write set -m "
    "first, or else programs started with & ignore kill -INT.",
    "Header": "Keep the header and the units: neither noheader nor nounits.",
    "Old drivers": "Leave a field out if the log says only 'Field ... is not a valid field to query'. Before R530 "
    "clocks_event_reasons.active is called clocks_throttle_reasons.active.",
}


def explain_recording() -> Explanation:
    """Return what to run, what it writes, and what it does not record."""
    return Explanation(
        title="Recording: one command runs the job and logs GPUs and machine beside it",
        sections=(
            Section(
                title="Record",
                code=(RECORD,),
                paragraphs=("It writes a folder and ends with the exit code of the job. In the folder:",),
                facts=tuple(Fact(name=name, text=text) for name, text in _FILES.items()),
            ),
            Section(title="Read", code=("gpureport report FOLDER -o report.html",)),
            Section(
                title="Where gpureport cannot be installed, run these beside the job",
                code=(
                    recording_advice.GPU_COMMAND,
                    recording_advice.DMON_COMMAND,
                    recording_advice.HOST_COMMAND,
                    recording_advice.PROCESS_COMMAND,
                ),
                paragraphs=("sar and pidstat are part of sysstat; vmstat -t 1 > host.txt does without single cores.",),
            ),
            Section(
                title="From R580 on, nvidia-smi counts the time of lowered clocks; add to its fields",
                code=(",".join(COUNTER_FIELDS),),
            ),
            Section(
                title="How much of a GPU works: on Hopper and newer, and with DCGM on older ones",
                code=(recording_advice.GPM_COMMAND, recording_advice.DCGM_COMMAND),
                paragraphs=("DCGM writes no time: read its log with --interval 1.",),
            ),
            Section(title="Mind", facts=tuple(Fact(name=name, text=text) for name, text in _ADVICE.items())),
            Section(
                title="Not recorded by any of them",
                paragraphs=(
                    "Training metrics: give the log of the job with --training FILE.",
                    "Settings that the command line of the job does not show: --param KEY=VALUE.",
                    "The work done: --work N:UNIT.",
                ),
            ),
        ),
    )
