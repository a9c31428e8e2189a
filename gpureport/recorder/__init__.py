"""Implements `gpureport record`, which runs nvidia-smi and the job, logs the host, and writes a folder of logs.

It loads nothing heavier than psutil.
"""
