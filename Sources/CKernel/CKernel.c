#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t kernel_monotonic_nanoseconds(void) { return clock_nanoseconds(CLOCK_MONOTONIC); }
int64_t kernel_unix_nanoseconds(void) { return clock_nanoseconds(CLOCK_REALTIME); }
int64_t kernel_process_nanoseconds(void) { return clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }
int64_t kernel_thread_nanoseconds(void) { return clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID); }

int kernel_format_time(int64_t nanoseconds, uint8_t *text, int64_t capacity) {
    time_t seconds = nanoseconds / 1000000000;
    struct tm parts;
    char date[32];
    if (gmtime_r(&seconds, &parts) == NULL) return -EINVAL;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    return snprintf((char *)text, (size_t)capacity, "%s.%03dZ", date,
                    (int)(nanoseconds / 1000000 % 1000));
}

#ifdef __GLIBC__
void kernel_trim_heap(void) { malloc_trim(0); }

int64_t kernel_heap_bytes(void) {
    struct mallinfo2 heap = mallinfo2();
    return (int64_t)(heap.uordblks + heap.hblkhd);
}
#else
void kernel_trim_heap(void) {}
int64_t kernel_heap_bytes(void) { return -1; }
#endif

int kernel_epoll_create(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll < 0 ? -errno : epoll;
}

static int epoll_control(int epoll, int operation, int descriptor, uint32_t interest,
                         uint64_t token) {
    struct epoll_event event = {.events = 0, .data = {.u64 = token}};
    if (interest & KERNEL_READABLE) event.events |= EPOLLIN | EPOLLRDHUP;
    if (interest & KERNEL_WRITABLE) event.events |= EPOLLOUT;
    return epoll_ctl(epoll, operation, descriptor, &event) < 0 ? -errno : 0;
}

int kernel_epoll_add(int epoll, int descriptor, uint32_t interest, uint64_t token) {
    return epoll_control(epoll, EPOLL_CTL_ADD, descriptor, interest, token);
}

int kernel_epoll_change(int epoll, int descriptor, uint32_t interest, uint64_t token) {
    return epoll_control(epoll, EPOLL_CTL_MOD, descriptor, interest, token);
}

int kernel_epoll_remove(int epoll, int descriptor) {
    return epoll_control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0);
}

int kernel_epoll_wait(int epoll, struct kernel_readiness *ready, int capacity,
                      int64_t nanoseconds) {
    struct epoll_event events[64];
    if (capacity > 64) capacity = 64;
    struct timespec time = {.tv_sec = nanoseconds / 1000000000,
                            .tv_nsec = nanoseconds % 1000000000};
    int count = epoll_pwait2(epoll, events, capacity, nanoseconds < 0 ? NULL : &time, NULL);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        // Linux before 5.11, or a sandbox without this call: milliseconds, rounded up.
        int64_t milliseconds = (nanoseconds + 999999) / 1000000;
        if (milliseconds > 3600000) milliseconds = 3600000;
        count = epoll_wait(epoll, events, capacity, nanoseconds < 0 ? -1 : (int)milliseconds);
    }
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int index = 0; index < count; index++) {
        uint32_t told = 0;
        if (events[index].events & EPOLLIN) told |= KERNEL_READABLE;
        if (events[index].events & EPOLLOUT) told |= KERNEL_WRITABLE;
        if (events[index].events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) told |= KERNEL_HUNG_UP;
        ready[index].token = events[index].data.u64;
        ready[index].events = told;
    }
    return count;
}

int kernel_eventfd_create(void) {
    int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int kernel_eventfd_signal(int descriptor) {
    uint64_t one = 1;
    return write(descriptor, &one, sizeof one) < 0 ? -errno : 0;
}

int kernel_eventfd_drain(int descriptor) {
    uint64_t count = 0;
    return read(descriptor, &count, sizeof count) == sizeof count;
}

/// Blocks the signals and opens a descriptor that reports them.
static int open_signals(const int *signals, size_t count) {
    signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    for (size_t index = 0; index < count; index++) sigaddset(&set, signals[index]);
    int status = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (status != 0) return -status;
    int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

/// The signals of a daemon come first.
static const int watched_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

int kernel_signals_open(void) { return open_signals(watched_signals, 3); }

int kernel_signals_open_parent(void) {
    return open_signals(watched_signals, sizeof watched_signals / sizeof *watched_signals);
}

int kernel_signals_next(int descriptor) {
    struct signalfd_siginfo information;
    ssize_t count = read(descriptor, &information, sizeof information);
    return count == sizeof information ? (int)information.ssi_signo : 0;
}

void kernel_signals_close(int descriptor) {
    close(descriptor);
    sigset_t set;
    sigemptyset(&set);
    for (size_t index = 0; index < sizeof watched_signals / sizeof *watched_signals; index++) {
        sigaddset(&set, watched_signals[index]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int unix_address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (path[0] == 0) return -EINVAL;
    if (strlen(path) >= sizeof address->sun_path) return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

static int unix_socket(void) {
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return descriptor < 0 ? -errno : descriptor;
}

int kernel_unix_listen(const char *path, unsigned mode, int backlog) {
    struct sockaddr_un address;
    int status = unix_address(path, &address);
    if (status < 0) return status;
    int descriptor = unix_socket();
    if (descriptor < 0) return descriptor;
    // The file has its mode from the start: a later chmod would leave it open for a moment.
    mode_t before = umask(~mode & 0777);
    status = bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
    umask(before);
    if (status == 0 && listen(descriptor, backlog) < 0) status = -errno;
    if (status == 0) return descriptor;
    close(descriptor);
    return status;
}

int kernel_unix_connect(const char *path) {
    struct sockaddr_un address;
    int status = unix_address(path, &address);
    if (status < 0) return status;
    int descriptor = unix_socket();
    if (descriptor < 0) return descriptor;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    status = -errno;
    close(descriptor);
    return status;
}

int kernel_notify_connect(const char *path) {
    struct sockaddr_un address;
    int status = unix_address(path, &address);
    if (status < 0) return status;
    socklen_t length = sizeof address;
    if (path[0] == '@') {
        address.sun_path[0] = 0;
        // Abstract names have no terminator: trailing zeros would be part of the name.
        length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    }
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    if (connect(descriptor, (struct sockaddr *)&address, length) == 0) return descriptor;
    status = -errno;
    close(descriptor);
    return status;
}

int kernel_accept(int descriptor) {
    int connection = accept4(descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return connection < 0 ? -errno : connection;
}

int kernel_lock_file(const char *path, unsigned mode) {
    for (int attempt = 0; attempt < 8; attempt++) {
        int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
        if (descriptor < 0) return -errno;
        int status = flock(descriptor, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        struct stat locked, named;
        if (status == 0 && fstat(descriptor, &locked) == 0 && lstat(path, &named) == 0
            && locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
            return descriptor;
        }
        close(descriptor);
        if (status < 0) return status;
    }
    return -EAGAIN;
}

int kernel_lock_again(int descriptor) {
    return flock(descriptor, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

bool kernel_is_file(int descriptor, const char *path) {
    struct stat open_file, named;
    return fstat(descriptor, &open_file) == 0 && lstat(path, &named) == 0
        && open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

int kernel_unix_path(int descriptor, uint8_t *path, int64_t capacity) {
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) return -errno;
    size_t start = offsetof(struct sockaddr_un, sun_path);
    if (address.sun_family != AF_UNIX || length <= start || address.sun_path[0] == 0) return 0;
    size_t count = strnlen(address.sun_path, length - start);
    if ((int64_t)count > capacity) return -ENAMETOOLONG;
    memcpy(path, address.sun_path, count);
    return (int)count;
}

int kernel_file_kind(const char *path) {
    struct stat information;
    if (lstat(path, &information) < 0) return errno == ENOENT ? KERNEL_FILE_NONE : -errno;
    if (S_ISSOCK(information.st_mode)) return KERNEL_FILE_SOCKET;
    return S_ISLNK(information.st_mode) ? KERNEL_FILE_LINK : KERNEL_FILE_OTHER;
}

int kernel_peer_credentials(int descriptor, struct kernel_credentials *credentials) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -errno;
    credentials->pid = peer.pid;
    credentials->uid = peer.uid;
    credentials->gid = peer.gid;
    return 0;
}

/// Starts a program in its own process group with default signal handling; `actions` are over
/// when it returns.
static struct kernel_child spawn(const char *path, char *const arguments[],
                                 posix_spawn_file_actions_t *actions, int failed, int ours,
                                 int theirs) {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (!failed) failed = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    if (!failed) failed = posix_spawnattr_setflags(&attributes, flags);
    if (!failed) failed = posix_spawnattr_setsigmask(&attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(&attributes, &all);
    pid_t pid = 0;
    if (!failed) failed = posix_spawn(&pid, path, actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(actions);
    posix_spawnattr_destroy(&attributes);
    close(theirs);
    if (!failed && fcntl(ours, F_SETFL, O_NONBLOCK) < 0) failed = errno;
    if (failed) {
        close(ours);
        return (struct kernel_child){-failed, -1};
    }
    return (struct kernel_child){pid, ours};
}

struct kernel_child kernel_spawn(const char *path, const char *name, const char *argument) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return (struct kernel_child){-errno, -1};
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int failed = posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    char *const arguments[] = {(char *)name, (char *)argument, NULL};
    return spawn(path, arguments, &actions, failed, pair[0], pair[1]);
}

struct kernel_child kernel_spawn_reading(const char *path, const char *argument) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return (struct kernel_child){-errno, -1};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    char *const arguments[] = {(char *)path, (char *)argument, NULL};
    return spawn(path, arguments, &actions, failed, ends[0], ends[1]);
}

bool kernel_child_ended(int pid) {
    pid_t ended = waitpid(pid, NULL, WNOHANG);
    return ended == pid || (ended < 0 && errno == ECHILD);
}

void kernel_child_kill(int pid) { kill(pid, SIGKILL); }

void kernel_child_await(int pid) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

int64_t kernel_read(int descriptor, uint8_t *bytes, int64_t count) {
    ssize_t read_count;
    do {
        read_count = read(descriptor, bytes, (size_t)count);
    } while (read_count < 0 && errno == EINTR);
    return read_count < 0 ? -errno : read_count;
}

int64_t kernel_write(int descriptor, const uint8_t *bytes, int64_t count) {
    ssize_t written;
    do {
        written = send(descriptor, bytes, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno == ENOTSOCK) written = write(descriptor, bytes, (size_t)count);
    } while (written < 0 && errno == EINTR);
    return written < 0 ? -errno : written;
}

void kernel_fill_standard_descriptors(void) {
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        // open() returns the lowest free number, which is the one just found closed.
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
    }
}

int kernel_open_file(const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

int kernel_open_null(void) {
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

void kernel_close(int descriptor) { close(descriptor); }
