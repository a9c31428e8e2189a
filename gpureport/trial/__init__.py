"""Tries settings of a job, for `gpureport try`."""
