"""The program that logs the machine beside the GPUs: ten lines of psutil."""

PROGRAM = """\
import csv, datetime, sys, time, psutil
out = csv.writer(sys.stdout)
out.writerow("timestamp cpu_percent cpu_max_core_percent ram_used_mib ram_total_mib iowait_percent".split())
psutil.cpu_percent(percpu=True), psutil.cpu_times_percent()
while not time.sleep(1):
    cores, memory = psutil.cpu_percent(percpu=True), psutil.virtual_memory()
    waiting = getattr(psutil.cpu_times_percent(), "iowait", "")
    stamp = datetime.datetime.now().isoformat(timespec="milliseconds")
    out.writerow([stamp, round(sum(cores) / len(cores), 1), max(cores), memory.used >> 20, memory.total >> 20, waiting])
    sys.stdout.flush()
"""
"""To be saved as host.py; its columns are those the importer of host logs knows."""
