"""What nvidia-smi writes, each form a function over lines.

`query` recognises a log and reads CSV of `--query-gpu`, the usual one, with `ticks` where no column names a GPU;
`fields` says what each query field fills and which lines are headers. `blocks` cuts a log of several forms, `documents`
reads `-q` as text and XML and drawn tables, `monitors` reads dmon, pmon and lists of processes.
"""

from gpureport.importers.nvidia_smi.query import NvidiaSmi

__all__ = ["NvidiaSmi"]
