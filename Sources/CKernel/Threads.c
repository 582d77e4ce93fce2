// Thread names, and scheduling of threads and processes.

#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <linux/sched/types.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void kernel_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

int kernel_request_short_slice(void) {
    // Policy and niceness stay unchanged.
    struct sched_attr attributes;
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) < 0) return -errno;
    attributes.sched_flags = 0;
    attributes.sched_runtime = 100000;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? -errno : 0;
}

// On Linux the niceness is the calling thread's alone.
int kernel_niceness(void) { return getpriority(PRIO_PROCESS, 0); }

int kernel_set_niceness(int niceness) {
    return setpriority(PRIO_PROCESS, 0, niceness) < 0 ? -errno : 0;
}

void kernel_request_exact_timers(void) { prctl(PR_SET_TIMERSLACK, 5000UL); }

void kernel_sleep_until(int64_t nanoseconds) {
    struct timespec end = {.tv_sec = nanoseconds / 1000000000,
                           .tv_nsec = nanoseconds % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

void kernel_serve_in_background(void) {
    signal(SIGPIPE, SIG_IGN);
    setpriority(PRIO_PROCESS, 0, 5);
}

void kernel_forbid_core_dumps(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
    // One byte is too little for a file. It is also the one value at which the kernel starts no
    // program for the dump (core_pattern with a pipe); with 0 it does.
    limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
    (void)setrlimit(RLIMIT_CORE, &limit);
}
