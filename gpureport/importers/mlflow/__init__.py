"""Runs of MLflow.

`selection` finds the store and the runs that are meant; `stores` and `folder` read what lies on this machine, `server`
what a server says, through MLflow's own client where need be. `recording` makes a `Tracked` of all that a store holds
of a run.
"""
