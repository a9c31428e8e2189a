/* A stand-in for libnvidia-ml.so.1: GPUs whose utilisation follows a schedule on the clock since it was loaded.
 *
 * STANDIN_GPUS    how many there are
 * STANDIN_BUSY    seconds of work, then STANDIN_REST seconds without, of GPU 0; the others work at 35 % throughout
 * STANDIN_LOSES   seconds after which GPU 1 answers no more
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef int result;
typedef uintptr_t handle;
enum { SUCCESS = 0, INVALID = 2, LOST = 15 };

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

static double elapsed(void)
{
    static double start = -1;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    if (start < 0)
        start = seconds;
    return seconds - start;
}

static unsigned count(void) { return (unsigned)setting("STANDIN_GPUS", 2); }
static unsigned number(handle gpu) { return (unsigned)gpu - 1; }

static int gone(handle gpu)
{
    double after = setting("STANDIN_LOSES", -1);
    return number(gpu) == 1 && after >= 0 && elapsed() > after;
}

static unsigned load(handle gpu)
{
    if (number(gpu) > 0)
        return 35;
    double busy = setting("STANDIN_BUSY", 20), rest = setting("STANDIN_REST", 20);
    double within = elapsed();
    while (within >= busy + rest)
        within -= busy + rest;
    return within < busy ? 97 : 0;
}

result nvmlInitWithFlags(unsigned flags) { (void)flags; elapsed(); return SUCCESS; }
result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
result nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(result code) { return code == LOST ? "GPU is lost" : code ? "Unknown Error" : "Success"; }
result nvmlDeviceGetCount_v2(unsigned *found) { *found = count(); return SUCCESS; }

result nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *gpu)
{
    if (index >= count())
        return INVALID;
    *gpu = (handle)index + 1;
    return SUCCESS;
}

struct utilization { unsigned gpu, memory; };
result nvmlDeviceGetUtilizationRates(handle gpu, struct utilization *found)
{
    if (gone(gpu))
        return LOST;
    found->gpu = load(gpu);
    found->memory = found->gpu / 2;
    return SUCCESS;
}

struct memory { unsigned long long total, free, used; };
result nvmlDeviceGetMemoryInfo(handle gpu, struct memory *found)
{
    if (gone(gpu))
        return LOST;
    found->total = 16ULL << 30;
    found->used = (number(gpu) == 0 ? 12ULL : 3ULL) << 30;
    found->free = found->total - found->used;
    return SUCCESS;
}

result nvmlDeviceGetPowerUsage(handle gpu, unsigned *milliwatts)
{
    if (gone(gpu))
        return LOST;
    *milliwatts = 60000 + 2000 * load(gpu);
    return SUCCESS;
}

result nvmlDeviceGetEnforcedPowerLimit(handle gpu, unsigned *milliwatts)
{
    (void)gpu;
    *milliwatts = 300000;
    return SUCCESS;
}
