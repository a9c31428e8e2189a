"""Which query of nvidia-smi a CSV header belongs to; queries of lists name GPUs differently from `--query-gpu`."""

_GPU = {"timestamp", "gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid"}
_CLOCKS = {"memory", "mem", "graphics", "gr"}
_PAGES = {"retired_pages.address", "retired_pages.timestamp", "retired_pages.cause"}
_ENDED = {"time", "max_memory_usage"}
_REMAPPED = "remapped_rows."


def command_of_header(header: str) -> str:
    """Return the command whose header a line of CSV is."""
    names = {cell.partition("[")[0].strip().lower() for cell in header.split(",")}
    rest = names - _GPU
    if rest & _PAGES:
        return "nvidia-smi --query-retired-pages"
    if "pid" in rest:
        return "nvidia-smi --query-accounted-apps" if rest & _ENDED else "nvidia-smi --query-compute-apps"
    if rest and rest <= _CLOCKS:
        return "nvidia-smi --query-supported-clocks"
    if rest and names & _GPU - {"timestamp"} and all(name.startswith(_REMAPPED) for name in rest):
        return "nvidia-smi --query-remapped-rows"
    return "nvidia-smi --query-gpu"
