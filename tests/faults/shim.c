/* Counts the system calls by which a process changes or reads files below a folder, and lets one of them go wrong.
 *
 * Loaded with LD_PRELOAD, it does nothing before `arm_fault`. A process forked from an armed one does nothing either.
 * Every call counted is logged as a line of its name and the path. Only Linux has these calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum action { KILL, KILL_IN_HALF, FAIL, HALF };
enum { GO_ON = 0, DO_HALF = -1, HALF_THEN_KILL = -2 };

static char folder[PATH_MAX];
static size_t folder_length;
static const char *counted = "", *failing = "";
static pid_t owner;
static atomic_long taken;
static long point, until;
static int action, code, log_to;

static atomic_long readings;
static long clock_after;
static long long clock_base, clock_back;

/* `calls` and `fails` are lists such as " write mkdir ": those that are counted, and those that fail after the point. */
void arm_fault(const char *below, const char *calls, const char *fails, long at, long end, int what, int error, int log)
{
    folder_length = strlen(below);
    memcpy(folder, below, folder_length + 1);
    counted = strdup(calls);
    failing = strdup(fails);
    point = at;
    until = end;
    action = what;
    code = error;
    log_to = log;
    taken = 0;
    owner = getpid();
}

/* From the reading of that number on the clock shows an earlier time. */
void set_clock_back(long long nanoseconds, long after)
{
    readings = 0;
    clock_after = after;
    clock_back = nanoseconds;
}

/* How often the clock was read since it was told to go back. */
long count_readings(void) { return readings; }

/* The clock stands still. */
void stop_clock(long long nanoseconds) { clock_base = nanoseconds; }

static int is_listed(const char *list, const char *name)
{
    char word[32];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

static void find_descriptor(int descriptor, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

static void find_path(int parent, const char *name, char *path)
{
    path[0] = 0;
    if (name[0] != '/') {
        if (parent == AT_FDCWD)
            syscall(SYS_getcwd, path, PATH_MAX);
        else
            find_descriptor(parent, path);
        strncat(path, "/", PATH_MAX - strlen(path) - 1);
    }
    strncat(path, name, PATH_MAX - strlen(path) - 1);
}

static int meet(const char *name, const char *path)
{
    if (strncmp(path, folder, folder_length) != 0)
        return GO_ON;
    long number = atomic_fetch_add(&taken, 1);
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s%s %s\n", number == point ? "*" : "", name, path);
    syscall(SYS_write, log_to, line, length);
    if (number == point && action == KILL)
        syscall(SYS_kill, owner, 9);
    if (number == point && action == KILL_IN_HALF)
        return HALF_THEN_KILL;
    if (number == point && action == HALF)
        return DO_HALF;
    if (action == FAIL && number >= point && number < until && is_listed(failing, name))
        return code;
    return GO_ON;
}

static int is_watched(const char *name)
{
    return owner && syscall(SYS_getpid) == owner && is_listed(counted, name);
}

static int at_path(const char *name, int parent, const char *path)
{
    char whole[PATH_MAX];
    if (!is_watched(name))
        return GO_ON;
    int before = errno;
    find_path(parent, path, whole);
    int verdict = meet(name, whole);
    errno = before;
    return verdict;
}

static int at_descriptor(const char *name, int descriptor)
{
    char whole[PATH_MAX];
    if (!is_watched(name))
        return GO_ON;
    int before = errno;
    find_descriptor(descriptor, whole);
    int verdict = meet(name, whole);
    errno = before;
    return verdict;
}

#define REFUSE(verdict) \
    do { \
        int refused = (verdict); \
        if (refused > 0) { \
            errno = refused; \
            return -1; \
        } \
    } while (0)

static int open_at(int parent, const char *path, int flags, mode_t mode)
{
    int makes = flags & (O_CREAT | O_TRUNC);
    REFUSE(at_path(makes ? "open" : "open_to_read", parent, path));
    return syscall(SYS_openat, parent, path, flags, mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int parent, const char *path, int flags, ...) { MODE(flags) return open_at(parent, path, flags, mode); }
int openat64(int parent, const char *path, int flags, ...) { MODE(flags) return open_at(parent, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Do what moves `size` bytes by the call `moved`, whole or half. */
#define MOVE(name, descriptor, moved) \
    int verdict = at_descriptor(name, descriptor); \
    REFUSE(verdict); \
    if (verdict != GO_ON && size > 1) \
        size /= 2; \
    ssize_t done = moved; \
    if (verdict == HALF_THEN_KILL) \
        syscall(SYS_kill, owner, 9); \
    return done;

ssize_t write(int file, const void *data, size_t size)
{ MOVE("write", file, syscall(SYS_write, file, data, size)) }
ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{ MOVE("write", file, syscall(SYS_pwrite64, file, data, size, offset)) }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset)
{ MOVE("write", file, syscall(SYS_pwrite64, file, data, size, offset)) }
ssize_t sendfile(int out, int in, off_t *offset, size_t size)
{ MOVE("write", out, syscall(SYS_sendfile, out, in, offset, size)) }
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size)
{ MOVE("write", out, syscall(SYS_sendfile, out, in, offset, size)) }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags)
{ MOVE("write", out, syscall(SYS_copy_file_range, in, from, out, to, size, flags)) }
ssize_t writev(int file, const struct iovec *parts, int size)
{ MOVE("write", file, syscall(SYS_writev, file, parts, size)) }

ssize_t read(int file, void *data, size_t size)
{ MOVE("read", file, syscall(SYS_read, file, data, size)) }
ssize_t pread(int file, void *data, size_t size, off_t offset)
{ MOVE("read", file, syscall(SYS_pread64, file, data, size, offset)) }
ssize_t pread64(int file, void *data, size_t size, off64_t offset)
{ MOVE("read", file, syscall(SYS_pread64, file, data, size, offset)) }

int mkdirat(int parent, const char *path, mode_t mode)
{ REFUSE(at_path("mkdir", parent, path)); return syscall(SYS_mkdirat, parent, path, mode); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{ REFUSE(at_path("rename", to, new)); return syscall(SYS_renameat2, from, old, to, new, flags); }
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags)
{ REFUSE(at_path("link", to, new)); return syscall(SYS_linkat, from, old, to, new, flags); }
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
int symlinkat(const char *old, int to, const char *new)
{ REFUSE(at_path("link", to, new)); return syscall(SYS_symlinkat, old, to, new); }
int symlink(const char *old, const char *new) { return symlinkat(old, AT_FDCWD, new); }

int unlinkat(int parent, const char *path, int flags)
{ REFUSE(at_path(flags & AT_REMOVEDIR ? "rmdir" : "unlink", parent, path)); return syscall(SYS_unlinkat, parent, path, flags); }
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) { return unlink(path) && errno == EISDIR ? rmdir(path) : 0; }

int chmod(const char *path, mode_t mode)
{ REFUSE(at_path("chmod", AT_FDCWD, path)); return syscall(SYS_fchmodat, AT_FDCWD, path, mode); }
int fchmodat(int parent, const char *path, mode_t mode, int flags)
{ (void)flags; REFUSE(at_path("chmod", parent, path)); return syscall(SYS_fchmodat, parent, path, mode); }

int fsync(int file) { REFUSE(at_descriptor("fsync", file)); return syscall(SYS_fsync, file); }
int fdatasync(int file) { REFUSE(at_descriptor("fsync", file)); return syscall(SYS_fdatasync, file); }
int ftruncate(int file, off_t size) { REFUSE(at_descriptor("truncate", file)); return syscall(SYS_ftruncate, file, size); }
int ftruncate64(int file, off64_t size) { REFUSE(at_descriptor("truncate", file)); return syscall(SYS_ftruncate, file, size); }

/* A file that was written may fail to close; it is closed all the same. */
int close(int file)
{
    int verdict = GO_ON;
    if (owner && (syscall(SYS_fcntl, file, F_GETFL) & O_ACCMODE) != O_RDONLY)
        verdict = at_descriptor("close", file);
    int done = syscall(SYS_close, file);
    REFUSE(verdict);
    return done;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int done = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && (clock_base || clock_back)) {
        long long time = clock_base ? clock_base : now->tv_sec * 1000000000LL + now->tv_nsec;
        if (atomic_fetch_add(&readings, 1) >= clock_after)
            time -= clock_back;
        now->tv_sec = time / 1000000000LL;
        now->tv_nsec = time % 1000000000LL;
    }
    return done;
}
