// Descriptors from a process to another: notifications, programs that are started with descriptors.

#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

static int option(int descriptor, int name) {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) < 0 ? -errno : value;
}

int kernel_socket_kind(int descriptor) {
    int domain = option(descriptor, SO_DOMAIN);
    int protocol = option(descriptor, SO_PROTOCOL);
    int type = option(descriptor, SO_TYPE);
    int listens = option(descriptor, SO_ACCEPTCONN);
    if (domain < 0) return domain;
    if (domain == AF_UNIX) {
        return type == SOCK_STREAM && listens == 1 ? KERNEL_SOCKET_UNIX_LISTENER
                                                   : KERNEL_SOCKET_OTHER;
    }
    if (domain != AF_INET && domain != AF_INET6) return KERNEL_SOCKET_OTHER;
    int family = domain == AF_INET6 ? KERNEL_SOCKET_IPV6 : 0;
    if (type == SOCK_DGRAM && protocol == IPPROTO_UDP) return family | KERNEL_SOCKET_UDP;
    if (type == SOCK_STREAM && protocol == IPPROTO_TCP && listens == 1) {
        return family | KERNEL_SOCKET_TCP_LISTENER;
    }
    return KERNEL_SOCKET_OTHER;
}

int kernel_set_close_on_exec(int descriptor, bool close) {
    return fcntl(descriptor, F_SETFD, close ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int kernel_move_descriptor(int descriptor, int limit) {
    if (descriptor >= limit) return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, limit);
    if (moved < 0) return -errno;
    close(descriptor);
    return moved;
}

void kernel_occupy_descriptors(int end) {
    // open() returns the lowest free number.
    int descriptor;
    do {
        descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (descriptor >= 0 && descriptor < end);
    if (descriptor >= 0) close(descriptor);
}

int kernel_listen_again(int descriptor, int backlog) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
    return listen(descriptor, backlog) < 0 ? -errno : 0;
}

bool kernel_same_file(int one, int other) {
    // Not by fstat() first: event counters and the like all have one inode.
    long compared = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, one, other);
    if (compared >= 0) return compared == 0;
    struct stat first, second;
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_ino == second.st_ino
        && first.st_dev == second.st_dev;
}

// Notifications

int kernel_notify_listen(char name[KERNEL_NOTIFY_NAME]) {
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    int on = 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address.sun_family;
    int status = setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ? -errno : 0;
    // An address without a name makes the kernel choose one: a zero and five digits (unix(7)).
    if (status == 0 && bind(descriptor, (struct sockaddr *)&address, length) < 0) status = -errno;
    length = sizeof address;
    if (status == 0 && getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) {
        status = -errno;
    }
    size_t count = length - offsetof(struct sockaddr_un, sun_path);
    if (status == 0 && (count < 2 || count >= KERNEL_NOTIFY_NAME)) status = -EADDRNOTAVAIL;
    if (status == 0) {
        memcpy(name, address.sun_path, count);
        name[0] = '@';
        name[count] = 0;
        return descriptor;
    }
    close(descriptor);
    return status;
}

struct kernel_notification kernel_notify_receive(int descriptor, uint8_t *text, int64_t capacity,
                                                 int *descriptors, int64_t limit) {
    struct kernel_notification result = {0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))
                   + CMSG_SPACE(sizeof(int) * KERNEL_NOTIFY_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = (size_t)capacity};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t count;
    do {
        count = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        result.length = -errno;
        return result;
    }
    result.length = (int)count;
    result.truncated = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET) continue;
        if (header->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(header), sizeof sender);
            result.pid = sender.pid;
        } else if (header->cmsg_type == SCM_RIGHTS) {
            size_t received = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t index = 0; index < received; index++) {
                int value;
                memcpy(&value, CMSG_DATA(header) + index * sizeof value, sizeof value);
                if (result.descriptors < limit) {
                    descriptors[result.descriptors++] = value;
                } else {
                    close(value);
                    result.truncated = true;
                }
            }
        }
    }
    return result;
}

int kernel_notify_send(int descriptor, const uint8_t *text, int64_t count, int attached,
                       int milliseconds) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = (void *)text, .iov_len = (size_t)count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (attached >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof attached);
        memcpy(CMSG_DATA(header), &attached, sizeof attached);
    }
    int64_t end = kernel_monotonic_nanoseconds() + (int64_t)milliseconds * 1000000;
    while (true) {
        if (sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return -errno;
        int64_t left = (end - kernel_monotonic_nanoseconds() + 999999) / 1000000;
        if (left <= 0) return -EAGAIN;
        struct pollfd room = {.fd = descriptor, .events = POLLOUT};
        poll(&room, 1, (int)left);
    }
}

// Programs

/// Splits texts that each end with a zero byte into an array that ends with NULL; the copies have
/// room for a process id. Returns NULL without memory, or if the last has no zero byte.
static char **split(const uint8_t *bytes, int64_t count) {
    if (count > 0 && bytes[count - 1] != 0) return NULL;
    size_t number = 0;
    for (int64_t index = 0; index < count; index++) number += bytes[index] == 0;
    char **list = calloc(number + 1, sizeof *list);
    if (list == NULL) return NULL;
    const char *next = (const char *)bytes;
    for (size_t index = 0; index < number; index++) {
        size_t length = strlen(next);
        if ((list[index] = calloc(1, length + 16)) == NULL) return NULL;
        memcpy(list[index], next, length);
        next += length + 1;
    }
    return list;
}

static void release(char **list) {
    for (char **entry = list; list != NULL && *entry != NULL; entry++) free(*entry);
    free(list);
}

static void name_process(char **environment) {
    for (char **entry = environment; *entry != NULL; entry++) {
        if (strcmp(*entry, "LISTEN_PID=") == 0 || strcmp(*entry, "WATCHDOG_PID=") == 0) {
            sprintf(*entry + strlen(*entry), "%d", (int)getpid());
        }
    }
}

/// Descriptor that has a number which a handed-over one takes.
struct moved {
    int copy;
    int flags;
};

/// Executes the program `file` with `descriptors` at the numbers from 3 on; on failure each number stands
/// for the same file as before.
static int execute(const char *file, char **arguments, char **environment,
                   const int *descriptors, int count, struct moved *moved) {
    enum { FIRST = 3 };
    int end = FIRST + count, status = 0, placed = 0;
    for (int index = 0; index < count; index++) moved[index].copy = -1;
    for (int index = 0; index < count && status == 0; index++) {
        moved[index].flags = fcntl(FIRST + index, F_GETFD);
        if (moved[index].flags < 0) continue;
        moved[index].copy = fcntl(FIRST + index, F_DUPFD_CLOEXEC, end);
        if (moved[index].copy < 0) status = -errno;
    }
    for (; placed < count && status == 0; placed++) {
        int source = descriptors[placed];
        if (source >= FIRST && source < end) source = moved[source - FIRST].copy;
        if (dup2(source, FIRST + placed) < 0) {
            status = -errno;
            break;
        }
    }
    if (status == 0) {
#ifdef SYS_close_range
        // Descriptors that a library has opened without FD_CLOEXEC; older kernels lack the flag.
        syscall(SYS_close_range, (unsigned)end, ~0U, 1U << 2);
#endif
        name_process(environment);
        execve(file, arguments, environment);
        status = -errno;
    }
    for (int index = 0; index < count; index++) {
        if (moved[index].copy >= 0) {
            if (index < placed) {
                dup3(moved[index].copy, FIRST + index,
                     moved[index].flags & FD_CLOEXEC ? O_CLOEXEC : 0);
            }
            close(moved[index].copy);
        } else if (index < placed) {
            close(FIRST + index);
        }
    }
    return status;
}

/// Copies of what a new program gets.
struct launch {
    char **arguments;
    char **environment;
    struct moved *moved;
};

static int prepare(struct launch *launch, const uint8_t *arguments, int64_t arguments_count,
                   const uint8_t *environment, int64_t environment_count, int64_t count) {
    launch->arguments = split(arguments, arguments_count);
    launch->environment = split(environment, environment_count);
    launch->moved = calloc((size_t)count + 1, sizeof *launch->moved);
    if (launch->arguments == NULL || launch->environment == NULL || launch->moved == NULL) {
        return -ENOMEM;
    }
    return launch->arguments[0] == NULL ? -EINVAL : 0;
}

static void discard(struct launch *launch) {
    release(launch->arguments);
    release(launch->environment);
    free(launch->moved);
}

/// Body of the child between fork and exec.
static void become(struct launch *launch, const int *descriptors, int count, int death_signal,
                   pid_t parent, int report) {
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, death_signal);
    // The parent may have ended before it could be watched.
    if (getppid() != parent) _exit(71);
    int status = execute(launch->arguments[0], launch->arguments, launch->environment, descriptors,
                         count, launch->moved);
    if (write(report, &status, sizeof status) < 0) _exit(71);
    _exit(71);
}

int kernel_start_process(const uint8_t *arguments, int64_t arguments_count,
                         const uint8_t *environment, int64_t environment_count,
                         const int *descriptors, int64_t count, int death_signal) {
    struct launch launch;
    int report[2];
    int status = prepare(&launch, arguments, arguments_count, environment, environment_count, count);
    if (status == 0 && pipe2(report, O_CLOEXEC) < 0) status = -errno;
    if (status < 0) {
        discard(&launch);
        return status;
    }
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) become(&launch, descriptors, (int)count, death_signal, parent, report[1]);
    if (child < 0) status = -errno;
    close(report[1]);
    if (child > 0) {
        ssize_t told;
        do {
            told = read(report[0], &status, sizeof status);
        } while (told < 0 && errno == EINTR);
        if (told != sizeof status) status = 0;
        if (status < 0) waitpid(child, NULL, 0);
    }
    close(report[0]);
    discard(&launch);
    return status < 0 ? status : child;
}

int kernel_replace_process(const char *file, const uint8_t *arguments, int64_t arguments_count,
                           const uint8_t *environment, int64_t environment_count,
                           const int *descriptors, int64_t count) {
    struct launch launch;
    int status = prepare(&launch, arguments, arguments_count, environment, environment_count, count);
    if (status == 0) {
        status = execute(file, launch.arguments, launch.environment, descriptors, (int)count,
                         launch.moved);
    }
    discard(&launch);
    return status;
}

struct kernel_ended kernel_reap(void) {
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid(-1, &status, WNOHANG);
    } while (pid < 0 && errno == EINTR);
    if (pid <= 0) return (struct kernel_ended){0, 0, 0};
    return (struct kernel_ended){
        pid,
        WIFEXITED(status) ? WEXITSTATUS(status) : 0,
        WIFSIGNALED(status) ? WTERMSIG(status) : 0,
    };
}

int kernel_process_id(void) { return getpid(); }

int kernel_send_signal(int pid, int signal) { return kill(pid, signal) < 0 ? -errno : 0; }

int kernel_program_facts(const char *path, struct kernel_program *facts) {
    struct stat file;
    if (stat(path, &file) < 0) return -errno;
    *facts = (struct kernel_program){
        .device = file.st_dev,
        .number = file.st_ino,
        .changed = (int64_t)file.st_ctim.tv_sec * 1000000000 + file.st_ctim.tv_nsec,
        .owner = file.st_uid,
        .regular = S_ISREG(file.st_mode),
        .executable = access(path, X_OK) == 0,
        .writable_by_others = (file.st_mode & (S_IWGRP | S_IWOTH)) != 0,
    };
    return 0;
}
