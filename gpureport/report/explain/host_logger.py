"""The program that logs the machine beside the GPUs: ten lines of psutil."""

PROGRAM = """\
import csv, datetime, sys, time, psutil
out = csv.writer(sys.stdout)
out.writerow("timestamp cpu_percent cpu_max_core_percent ram_used_mib ram_total_mib iowait_percent cpu_count".split())
psutil.cpu_percent(percpu=True), psutil.cpu_times_percent()
while not time.sleep(1):
    cpus, ram = psutil.cpu_percent(percpu=True), psutil.virtual_memory()
    wait = getattr(psutil.cpu_times_percent(), "iowait", "")
    stamp = datetime.datetime.now().isoformat(timespec="milliseconds")
    out.writerow([stamp, round(sum(cpus) / len(cpus), 1), max(cpus), ram.used >> 20, ram.total >> 20, wait, len(cpus)])
    sys.stdout.flush()
"""
"""To be saved as host.py; its columns are those the importer of host logs knows."""
