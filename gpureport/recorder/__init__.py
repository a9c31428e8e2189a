"""Implements `gpureport record`, which runs nvidia-smi and the job, logs the host, and writes a folder of logs.

It imports nothing heavier than psutil.
"""
