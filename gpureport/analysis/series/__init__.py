"""A device's samples, the time that each covers, values derived from them, and metrics that many rules read."""

UTILISATION, MEMORY, POWER = "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"
CLOCK, TEMPERATURE = "gpu_sm_clock_hertz", "gpu_temperature_celsius"
CPU, CORE, IOWAIT, JOB = "cpu_utilization_ratio", "cpu_busiest_core_ratio", "cpu_iowait_ratio", "job_cpu_cores"
