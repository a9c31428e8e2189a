"""What nvidia-smi writes besides CSV of `--query-gpu`: one module a form.

A form is a class with, besides what `chunks.Form` asks for, `opens(line)`: whether a line begins a block of this form;
cheap, and false for prose. Its `chunks` reads a block, from the line that opens it to the line that opens another.
"""

from gpureport.importers.logs.nvidia_smi.forms.form import BlockForm
from gpureport.importers.logs.nvidia_smi.forms.monitors.compute_apps import ComputeApps
from gpureport.importers.logs.nvidia_smi.forms.monitors.dmon import Dmon
from gpureport.importers.logs.nvidia_smi.forms.monitors.pmon import Pmon
from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv

FORMS: tuple[type[BlockForm], ...] = (Dmon, Pmon, ComputeApps, QueryCsv)
"""Forms in the order in which they are asked for a line; the first that opens a block has it."""
