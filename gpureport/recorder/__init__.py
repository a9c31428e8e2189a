"""`gpureport record`: runs nvidia-smi and the job, logs the host, and writes the folder that other commands read.

It loads psutil and nothing heavier. Each module writes one file in the folder.
"""
