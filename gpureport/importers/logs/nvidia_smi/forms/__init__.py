"""CSV of `--query-gpu` beside other forms."""

from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv

FORMS = (QueryCsv,)
"""Forms that are read by the first engine."""
