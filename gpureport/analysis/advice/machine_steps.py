"""Steps on the machine: cooling, power, links, the choice of GPU, and what is recorded."""

from gpureport.analysis.advice import conditions, references, setting_changes
from gpureport.analysis.advice.step import Step
from gpureport.recording_advice import RECORD

STEPS = (
    Step(
        name="cooling",
        title="Cool the GPU",
        do="Check airflow, fans, filters and blanking panels of this slot, the temperature of the inlet air, and the "
        "temperature of the memory.",
        when="Clocks are lowered by heat.",
        risk="None, or noise.",
        check="The temperature margin is positive under load, and clocks reach those of the other GPUs.",
        source=references.join_sources(references.NEPTUNE, references.CENTML),
    ),
    Step(
        name="lower_power_limit",
        title="Lower the power limit a little",
        do="Set a limit 10 to 15% below what the GPU draws while it is slowed (nvidia-smi -pl WATTS, as root) until "
        "cooling is repaired: a limit above that changes nothing, and steady clocks beat clocks that swing with the "
        "heat.",
        when="Heat lowers the clocks and cooling cannot be changed now.",
        risk="A few per cent of speed.",
        check="The clock no longer falls with heat; work per GPU-hour does not fall.",
        source=references.NVIDIA_SMI,
        applied_by=(setting_changes.LOWER_POWER_LIMIT,),
    ),
    Step(
        name="power_supply",
        title="Check the power supply",
        do="Check power supplies, cables and connectors, the power budget of the rack, and the brake signal in the log "
        "of the board's management controller.",
        when="The hardware lowers clocks without heat, most of all on all GPUs of a machine at once.",
        risk="None; it takes the machine out of use.",
        check="No hardware slowdown under full load.",
        source=references.join_sources(references.NEPTUNE, references.NVIDIA_SMI),
    ),
    Step(
        name="raise_power_limit",
        title="Raise the power limit to the default",
        do="Set nvidia-smi -pl to the default limit (as root), or ask whoever set the lower one why.",
        when="The limit is below the default of the board, and the GPU runs into it.",
        risk="More heat and power; the limit may be there for a reason.",
        check="Clocks under load rise.",
        source=references.NVIDIA_SMI,
        conditions=(conditions.POWER_LIMIT_REACHED,),
        applied_by=(setting_changes.HIGHER_POWER_LIMIT,),
    ),
    Step(
        name="accept_power_cap",
        title="Nothing, or a GPU with more power",
        do="Take it as normal: under heavy load many boards run at their power limit. Compare work per GPU-hour and "
        "per kWh with another board if power is what limits you.",
        when="Power stays at the default limit under load.",
        risk="None.",
        check="Work per GPU-hour.",
        source=references.CENTML,
    ),
    Step(
        name="unlock_clocks",
        title="Unlock the clocks",
        do="Reset application clocks (nvidia-smi -rac) and locked clocks (nvidia-smi -rgc), as root.",
        when="The clock is locked below what the board can do.",
        risk="They may have been locked to make measurements repeatable.",
        check="The clock under load reaches the highest the board allows.",
        source=references.NVIDIA_SMI,
    ),
    Step(
        name="free_cpu",
        title="Free the CPU of other programs",
        do="Find the programs that keep the CPU busy with top, then move them to another machine or another time, or "
        "bind them to cores that the job does not use (taskset, cgroups, the cores a scheduler gives to each job).",
        when="The CPU is busy while the GPU waits, and the job's own processes hold less than half of its load.",
        risk="Other people's work takes longer.",
        check="The CPU is less busy while the job runs, and the GPU waits less.",
        source=references.LINUX_MANUAL,
    ),
    Step(
        name="measure_alone",
        title="Measure without other programs",
        do="Run the job for some minutes while nothing else keeps the CPU busy (find what does with top), and compare "
        "both runs.",
        when="Other programs fill the CPU while the job itself hardly uses it.",
        risk="Other people's work has to wait that long.",
        check="If the GPU is as little used without them, the CPU was not the cause.",
        source=references.LINUX_MANUAL,
    ),
    Step(
        name="reseat_card",
        title="Reseat the card",
        do="Compare nvidia-smi -q -d PCIE with the slot's width, reseat card and riser, and look at the BIOS setting "
        "of the slot's generation and lanes.",
        when="The PCIe link runs below its width or generation under load.",
        risk="It takes the machine out of use.",
        check="Generation and width under load equal the highest.",
        source=references.NVIDIA_SMI,
        conditions=(conditions.LINK_REDUCED,),
    ),
    Step(
        name="replace_gpu",
        title="Reset or replace the GPU",
        do="Look at nvidia-smi -q -d ECC,ROW_REMAPPER; reset the GPU when a remapping is pending, and have it replaced "
        "when remapping failed or uncorrectable errors come back.",
        when="Memory errors were counted during the run.",
        risk="It takes the GPU out of use.",
        check="The counters stay where they are under load.",
        source=references.NVIDIA_MEMORY,
    ),
    Step(
        name="recover_gpu",
        title="Recover the lost GPU",
        do="Read the Xid message in the kernel log (dmesg), drain the machine, reset the GPU or reboot, and run "
        "dcgmi diag -r 3 before it is used again.",
        when="The driver no longer reaches a GPU.",
        risk="It takes the machine out of use.",
        check="The diagnosis passes, and no Xid follows under load.",
        source=references.NVIDIA_XID,
    ),
    Step(
        name="smaller_gpu",
        title="A smaller GPU",
        do="Run the job on a smaller GPU, on a MIG slice, or several jobs on one GPU.",
        when="A smaller GPU would do: it has the memory and the speed.",
        risk="Longer runs; less room for growth.",
        check="Cost per unit of work falls.",
        source=references.join_sources(references.CENTML, references.CLOUD),
        applied_by=(setting_changes.LESS_GPU_MEMORY,),
    ),
    Step(
        name="larger_gpu",
        title="A larger GPU",
        do="Try a GPU with more memory or a newer compute capability for a few hundred steps.",
        when="Memory is always short, or the GPU is busy all the time and time matters more than money.",
        risk="Price and availability.",
        check="Cost per unit of work on each GPU and provider.",
        source=references.join_sources(references.CENTML, references.CLOUD),
        applied_by=(setting_changes.MORE_GPU_MEMORY,),
    ),
    Step(
        name="record_more",
        title="Record what shows the cause",
        do=f"Record the CPU, its busiest core and waiting for I/O beside the GPU: {RECORD}.",
        when="The log holds too little to show why.",
        risk="None.",
        check="The next report names a cause.",
        source=references.NEPTUNE,
    ),
    Step(
        name="keep_recording",
        title="Keep the recorder running",
        do="Start the recorder before the job and end it after (kill -INT), outside the job's memory limit, on a disk "
        "with room; watch that its file grows.",
        when="Samples are missing within the run, or end before it does.",
        risk="None.",
        check="Coverage of the next report is 100%.",
        source=references.NVIDIA_SMI,
    ),
)
"""What helps on the machine itself."""
