"""How differences between steps are written: size, interval, verdict, doubts, and what changed in the set-up.

Imports the other words of this room's parent and `comparison`.
A way to say how sure a difference is goes here; sentences of one section stay with it.
"""
