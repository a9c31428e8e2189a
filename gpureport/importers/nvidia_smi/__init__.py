"""What nvidia-smi writes, each form a function over lines.

`importer` recognises a log and reads it block by block, `fields` says what each query field fills and which lines are
headers. `query` reads CSV of `--query-gpu`, the usual log, with `ticks` where no column names a GPU; `documents` reads
`-q` as text and XML and drawn tables, `monitors` reads dmon, pmon and lists of processes.
"""

from gpureport.importers.nvidia_smi.importer import NvidiaSmi

__all__ = ["NvidiaSmi"]
