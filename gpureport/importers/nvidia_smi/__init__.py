"""What nvidia-smi writes: a form a module, and the fields that all forms share.

`importer` recognises a log. `query`, with `headers`, `query_lines` and `ticks`, reads CSV of `--query-gpu`, the usual
log; `drawn_tables`, `documents` (`-q` as text and XML, with `query_paths`), `monitors`
(`dmon`) and `process_lists` read the other forms, and `blocks` a log with several of them. `fields` says what each
query field fills.
"""

from gpureport.importers.nvidia_smi.importer import NvidiaSmi

__all__ = ["NvidiaSmi"]
