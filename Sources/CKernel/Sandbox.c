// Sandbox for a process: permanently drops rights that it does not need.

#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Landlock: files

// On some systems the kernel headers are older than the kernel, so its numbers are defined here.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum { LANDLOCK_VERSION_FLAG = 1, LANDLOCK_PATH_RULE = 1 };
enum { READ_FILE = 1 << 2, READ_DIRECTORY = 1 << 3 };
enum { BIND_TCP = 1 << 0 };
enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0, SCOPE_SIGNALS = 1 << 1 };

struct ruleset {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

struct path_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

/// Readable paths: libraries that name services load, certificates, and name resolution files.
static const char *const readable_paths[] = {
    "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls", "/etc/pki/ca-trust",
    "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
    "/usr/share/p11-kit", "/etc/gnutls", "/etc/crypto-policies", "/usr/share/crypto-policies",
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
    "/sys/devices/system/cpu", "/dev/urandom", "/dev/random",
};

/// Allows reading `path` and everything beneath it, if it exists.
static void allow_path(int ruleset, const char *path) {
    int descriptor = open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0) return;
    struct stat found;
    if (fstat(descriptor, &found) == 0) {
        uint64_t allowed = READ_FILE | (S_ISDIR(found.st_mode) ? READ_DIRECTORY : 0);
        struct path_rule rule = {allowed, descriptor};
        syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_RULE, &rule, 0);
    }
    close(descriptor);
}

static bool restrict_files(const char *readable) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
    if (version < 1) return false;
    // Each version adds file rights: moving, truncating, device control.
    int rights = version == 1 ? 13 : version == 2 ? 14 : version < 5 ? 15 : 16;
    struct ruleset attributes = {((uint64_t)1 << rights) - 1, BIND_TCP,
                                 SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS};
    size_t size = version < 4 ? offsetof(struct ruleset, network)
                  : version < 6 ? offsetof(struct ruleset, scopes)
                                : sizeof attributes;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (ruleset < 0) return false;
    for (size_t index = 0; index < sizeof readable_paths / sizeof *readable_paths; index++) {
        allow_path(ruleset, readable_paths[index]);
    }
    if (readable[0] != 0) allow_path(ruleset, readable);
    bool done = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

// seccomp: system calls

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OUR_ARCHITECTURE

struct filter {
    struct sock_filter steps[1024];
    unsigned short count;
};

static void put(struct filter *filter, uint16_t code, uint32_t value, uint8_t yes, uint8_t no) {
    if (filter->count == sizeof filter->steps / sizeof *filter->steps) return;
    filter->steps[filter->count++] = (struct sock_filter){code, yes, no, value};
}

static void give(struct filter *filter, uint32_t result) {
    put(filter, BPF_RET | BPF_K, result, 0, 0);
}

static void load(struct filter *filter, size_t offset) {
    put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/// Offset of the lower half of a call's argument, which comes first on both architectures.
static size_t argument(int index) {
    return offsetof(struct seccomp_data, args) + (size_t)index * sizeof(uint64_t);
}

static const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
/// Result of calls that this file does not list: libraries then try an older call.
static const uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS;

static void allow(struct filter *filter, long call) {
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    give(filter, SECCOMP_RET_ALLOW);
}

/// Allows a call if the argument, masked with `mask`, is one of the values.
static void allow_if(struct filter *filter, long call, int index, uint32_t mask,
                     const uint32_t *values, uint8_t count) {
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (uint8_t)(3 + 2 * count));
    load(filter, argument(index));
    put(filter, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    for (uint8_t value = 0; value < count; value++) {
        put(filter, BPF_JMP | BPF_JEQ | BPF_K, values[value], 0, 1);
        give(filter, SECCOMP_RET_ALLOW);
    }
    give(filter, refused);
}

/// Calls that are harmless with any arguments, or that Landlock checks.
static const long plain_calls[] = {
    // Memory.
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise,
    // Threads and time.
    SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rseq,
    SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_membarrier, SYS_getcpu,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
    SYS_restart_syscall, SYS_exit, SYS_exit_group,
    // Signals of this process.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
    // Open descriptors, and readable files.
    SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_lseek, SYS_close, SYS_dup,
    SYS_dup3, SYS_pipe2, SYS_eventfd2, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_faccessat,
    SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd,
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
    // The network.
    SYS_connect, SYS_bind, SYS_shutdown, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom,
    SYS_recvmsg, SYS_recvmmsg, SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername,
    // Information about the process and system.
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_times, SYS_getrandom,
#ifdef __x86_64__
    SYS_arch_prctl, SYS_time, SYS_getrlimit, SYS_stat, SYS_lstat, SYS_access, SYS_readlink,
    SYS_dup2, SYS_pipe, SYS_poll, SYS_select, SYS_epoll_wait, SYS_epoll_create, SYS_getpgrp,
#endif
};

#define ALLOW_IF(filter, call, index, mask, ...)                                                  \
    do {                                                                                          \
        static const uint32_t values[] = {__VA_ARGS__};                                           \
        allow_if(filter, call, index, mask, values, sizeof values / sizeof *values);              \
    } while (0)

static void describe_calls(struct filter *filter) {
    load(filter, offsetof(struct seccomp_data, arch));
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0);
    give(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(struct seccomp_data, nr));
    for (size_t index = 0; index < sizeof plain_calls / sizeof *plain_calls; index++) {
        allow(filter, plain_calls[index]);
    }
    const uint32_t all = UINT32_MAX;
    const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
    // AF_UNIX is refused: neither the daemon's socket nor another service's may be reached.
    ALLOW_IF(filter, SYS_socket, 0, all, AF_INET, AF_INET6, AF_NETLINK);
    ALLOW_IF(filter, SYS_openat, 2, writing, 0);
#ifdef SYS_open
    ALLOW_IF(filter, SYS_open, 1, writing, 0);
#endif
    // Threads are allowed, processes are not; clone3 has its flags behind a pointer and is not
    // listed.
    ALLOW_IF(filter, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
    // Otherwise limits could be set on other processes of this user, and signals sent to them.
    ALLOW_IF(filter, SYS_prlimit64, 0, all, 0);
    uint32_t ourselves = (uint32_t)getpid();
    allow_if(filter, SYS_tgkill, 0, all, &ourselves, 1);
    // Operations that make the process readable for others, or inject terminal input, are refused.
    ALLOW_IF(filter, SYS_prctl, 0, all, PR_SET_NAME, PR_GET_NAME, 0x53564d41 /* PR_SET_VMA */);
    ALLOW_IF(filter, SYS_fcntl, 1, all, F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL,
             F_DUPFD_CLOEXEC);
    ALLOW_IF(filter, SYS_ioctl, 1, all, FIONREAD, FIONBIO, TCGETS);
    give(filter, unknown);
}

static bool restrict_calls(void) {
    static struct filter filter;
    filter.count = 0;
    describe_calls(&filter);
    struct sock_fprog program = {filter.count, filter.steps};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

#else
static bool restrict_calls(void) { return false; }
#endif

// The rest

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static bool limit_memory(int64_t bytes) {
#ifdef HAS_SANITIZER
    // The shadow memory of sanitizers exceeds any limit.
    (void)bytes;
    return true;
#else
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    return setrlimit(RLIMIT_AS, &limit) == 0;
#endif
}

/// Makes this process the first to be ended when memory is short.
static bool go_first(void) {
    int descriptor = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    bool done = write(descriptor, "1000", 4) == 4;
    close(descriptor);
    return done;
}

unsigned kernel_confine(int64_t memory, const char *readable) {
    unsigned missing = 0;
    if (!go_first()) missing |= KERNEL_UNCONFINED_OOM;
    if (!limit_memory(memory)) missing |= KERNEL_UNCONFINED_MEMORY;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) missing |= KERNEL_UNCONFINED_PRIVILEGES;
    if (!restrict_files(readable)) missing |= KERNEL_UNCONFINED_FILES;
    // After this call /proc/self belongs to root.
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) missing |= KERNEL_UNCONFINED_PRIVILEGES;
    if (!restrict_calls()) missing |= KERNEL_UNCONFINED_CALLS;
    return missing;
}
