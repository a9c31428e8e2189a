"""`gpureport record`: runs nvidia-smi, a host log and the job, and writes the folder that the other commands read.

It loads psutil and nothing heavier. Each module writes one file in the folder.
"""
