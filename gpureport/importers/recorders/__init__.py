"""Several processes or machines that wrote into one log, told apart.

Imports `devices` and `timebase`.
A new sign that tells writers apart goes here.
"""
