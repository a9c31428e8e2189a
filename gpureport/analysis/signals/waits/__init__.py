"""GPUs that wait for something else: on which bins, in which episodes, and what that costs.

Imports `series`, `job`, `rules` and other signals.
A device that GPUs can wait for is a rule of `detectors/waiting`; what such rules share goes here.
"""
