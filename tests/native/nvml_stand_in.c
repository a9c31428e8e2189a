/* Stands in for NVIDIA's driver library where there is no GPU, so that nvidia-ml-py and what is built on it run as they
   are. Two GPUs of 80 GiB and 400 W:

     gpu 0   memory.used is the clock: MiB of a million bytes count the milliseconds of the wall clock, modulo 80 000,
             so that a recorded value says when it was read
     gpu 1   memory.used is 32 GiB

   Both are busy and idle in turns of 10 s of the wall clock, gpu 1 the other way round. */
#include <stdlib.h>
#include <time.h>

#define GPUS 2
#define NOT_FOUND 6

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Utilization;

static char gpus[GPUS];

static long long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int number(void *gpu) { return (int)((char *)gpu - gpus); }

static int busy(void *gpu) { return (milliseconds() / 10000 + number(gpu)) % 2 == 0; }

int nvmlInitWithFlags(unsigned int flags) { return (void)flags, 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code ? "no such GPU" : "no error"; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = GPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **gpu) {
    if (index >= GPUS) return NOT_FOUND;
    *gpu = &gpus[index];
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *gpu, Memory *memory) {
    memory->total = 80ULL << 30;
    memory->used = number(gpu) ? 32ULL << 30 : (unsigned long long)(milliseconds() % 80000) * 1000000ULL;
    memory->free = memory->total - memory->used;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *gpu, Utilization *rates) {
    rates->gpu = busy(gpu) ? 95 : 0;
    rates->memory = rates->gpu / 2;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned int *milliwatts) {
    *milliwatts = busy(gpu) ? 390000 : 70000;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned int *milliwatts) {
    (void)gpu;
    *milliwatts = 400000;
    return 0;
}
