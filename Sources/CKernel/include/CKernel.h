/// Linux system interfaces that Swift's Glibc module does not export.
///
/// Every function returns a negated errno on failure. None of them sets policy: they do not log,
/// retry only after EINTR, and keep no state outside their arguments.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For Swift only, which with these attributes imports a pointer and its count as a span. The C
// compiler would require the count before the pointer. A package that uses SFUClient reads this
// header too, and without the feature SafeInteropWrappers its compiler does not know the attribute.
#ifdef __swift__
#if __has_feature(bounds_safety_attributes)
#define KERNEL_SPANS
#endif
#endif

#ifdef KERNEL_SPANS
#define KERNEL_COUNTED_BY(count) __attribute__((__counted_by__(count)))
#define KERNEL_NOESCAPE __attribute__((noescape))
#else
#define KERNEL_COUNTED_BY(count)
#define KERNEL_NOESCAPE
#endif

// Time

/// CLOCK_MONOTONIC, in nanoseconds.
int64_t kernel_monotonic_nanoseconds(void);
/// CLOCK_REALTIME, in nanoseconds since 1970.
int64_t kernel_unix_nanoseconds(void);
/// Writes a time since 1970 in the format of RFC 3339, in UTC with milliseconds; returns its length,
/// 24 bytes.
int kernel_format_time(
    int64_t nanoseconds, uint8_t *KERNEL_COUNTED_BY(capacity) text KERNEL_NOESCAPE,
    int64_t capacity);
/// User and system time of this process, in nanoseconds.
int64_t kernel_process_nanoseconds(void);
/// User and system time of the calling thread, in nanoseconds.
int64_t kernel_thread_nanoseconds(void);
/// Names the calling thread for process viewers; only the first 15 bytes count.
void kernel_name_thread(const char *name);
/// Requests the minimum scheduler time slice, 0.1 ms, for the calling thread.
///
/// The thread's share of the processor stays the same. With a short slice, however, it preempts a
/// thread in the middle of a long slice when it wakes (Linux 6.12 or later, sched_setattr(2)).
/// Otherwise it waits until that slice ends, some 3 ms. Returns 0 or -errno; older kernels accept
/// the request and ignore it.
int kernel_request_short_slice(void);
/// The calling thread's nice value, -20 to 19: the lower, the larger its share of a busy processor.
int kernel_niceness(void);
/// Sets that value. Returns 0 or -errno; less than now takes CAP_SYS_NICE or RLIMIT_NICE.
int kernel_set_niceness(int niceness);
/// Lets the calling thread's timers end at most 5 microseconds late, instead of the usual 50.
void kernel_request_exact_timers(void);
/// Sleeps until CLOCK_MONOTONIC has reached this time, in nanoseconds, or until a signal.
void kernel_sleep_until(int64_t nanoseconds);
/// Has the kernel write no core dumps of this process, and give none to a program, as a dump has
/// keys in it. The hard limit stays, so that who may can take one all the same (prlimit(1)).
void kernel_forbid_core_dumps(void);
/// Returns free heap memory to the system.
void kernel_trim_heap(void);
/// Bytes currently allocated, in the heap and by mmap (mallinfo(3)); -1 if unknown.
///
/// Unlike resident memory, the number includes reserved pages that were never touched, and excludes
/// free ones.
int64_t kernel_heap_bytes(void);

// Memory that outlives the process

/// Creates memory that lives as long as a descriptor of it, zeroed and of fixed size; returns the
/// descriptor. Pages that are not touched take no memory.
int kernel_memory_create(const char *name, uint64_t bytes);
/// Size of such memory; -EPERM if it could shrink, -errno if the descriptor is something else.
int64_t kernel_memory_bytes(int memory);
/// Maps such memory, shared and left out of core dumps; NULL on failure.
void *kernel_memory_map(int memory, uint64_t bytes, bool writable);
void kernel_memory_unmap(void *start, uint64_t bytes);
/// Gives back the whole pages in a part of such memory, which is zeroed then.
void kernel_memory_release(void *start, uint64_t bytes);
/// Stores a word after everything that was stored before it; `place` is a multiple of 8.
void kernel_store_release(void *place, uint64_t value);
/// From now on stores 1 at `place`, a multiple of 8, when a fault of this process ends it: SIGILL,
/// SIGTRAP, SIGSEGV, SIGBUS, SIGFPE or SIGABRT.
void kernel_mark_faults(void *place);

// Waiting

int kernel_epoll_create(void);
/// Events to wait for; errors and hang-ups are always reported.
enum { KERNEL_READABLE = 1, KERNEL_WRITABLE = 2, KERNEL_HUNG_UP = 4 };
int kernel_epoll_add(int epoll, int descriptor, uint32_t interest, uint64_t token);
int kernel_epoll_change(int epoll, int descriptor, uint32_t interest, uint64_t token);
int kernel_epoll_remove(int epoll, int descriptor);

struct kernel_readiness {
    uint64_t token;
    uint32_t events;
};

/// Waits for events, at most `nanoseconds`, or forever if negative; returns the number of entries
/// filled in `ready`. An interrupted wait returns 0.
int kernel_epoll_wait(
    int epoll, struct kernel_readiness *KERNEL_COUNTED_BY(capacity) ready KERNEL_NOESCAPE,
    int capacity, int64_t nanoseconds);

int kernel_eventfd_create(void);
int kernel_eventfd_signal(int descriptor);
/// Clears the pending wake-ups; returns whether there were any.
int kernel_eventfd_drain(int descriptor);

/// Ignores SIGPIPE, blocks SIGTERM, SIGINT and SIGHUP in this thread and all threads that it starts,
/// and returns a descriptor that reports the blocked signals.
int kernel_signals_open(void);
/// The same for SIGUSR1, SIGUSR2 and SIGCHLD besides.
int kernel_signals_open_parent(void);
/// Returns the next signal's number, or 0 if there is none.
int kernel_signals_next(int descriptor);
/// Closes the descriptor and unblocks the signals of `kernel_signals_open_parent` in this thread.
void kernel_signals_close(int descriptor);

// Addresses

/// IP address and port; IPv4 is stored as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
struct kernel_address {
    uint64_t high;
    uint64_t low;
    uint16_t port;
};

enum { KERNEL_ADDRESS_TEXT = 64 };

/// Parses a numeric address without port, brackets or scope.
bool kernel_address_parse(const char *text, struct kernel_address *address);
/// Writes the address without its port; returns the length without the closing zero.
int kernel_address_format(struct kernel_address address, char text[KERNEL_ADDRESS_TEXT]);

struct kernel_interface {
    struct kernel_address address;
    bool loopback;
    bool up;
};
/// Returns the number of interface addresses and fills in the first `capacity` of them.
int kernel_interface_addresses(struct kernel_interface *interfaces, int capacity);

// UDP

/// Opens a non-blocking bound socket that reports destination addresses and queue drops.
int kernel_udp_open(struct kernel_address address, bool ipv6);
/// Sets the options of `kernel_udp_open` that can still be set on a bound socket.
int kernel_udp_prepare(int descriptor, bool ipv6);
/// Opens a non-blocking UDP socket connected to one peer. It receives only from that peer, and the
/// next send fails with ECONNREFUSED if no socket is open there.
int kernel_udp_connect(struct kernel_address address, bool ipv6);
/// Stores the address that a socket is bound to, IPv4 or IPv6.
int kernel_local_address(int descriptor, struct kernel_address *address);
/// Sets the socket buffer to `bytes`, above the system's limit if permitted; returns the resulting
/// size, without the kernel's doubling.
int kernel_set_receive_buffer(int descriptor, int bytes);
int kernel_set_send_buffer(int descriptor, int bytes);

/// Makes the kernel timestamp each received datagram with CLOCK_REALTIME.
int kernel_timestamp_arrivals(int descriptor);

/// Received datagram, valid until the next receive into the same inbox.
struct kernel_datagram {
    const uint8_t *bytes;
    uint32_t length;
    /// Whether the datagram exceeded the buffer; the excess is lost.
    bool truncated;
    struct kernel_address remote;
    /// Local address, if the kernel reported it; its port is 0.
    struct kernel_address local;
    /// Index of the receiving interface; 0 if the kernel reported none.
    uint32_t interface;
    /// Datagrams that the socket's queue has dropped since it was opened, modulo 2^32.
    uint32_t queue_drops;
    bool has_queue_drops;
    /// Time of arrival at the machine, in nanoseconds since 1970; 0 without a timestamp.
    int64_t arrival;
};

/// Buffers for the datagrams of one receive call.
struct kernel_inbox;
struct kernel_inbox *kernel_inbox_create(int capacity, int size);
void kernel_inbox_destroy(struct kernel_inbox *inbox);
/// Receives available datagrams, up to the inbox's capacity; returns their number.
int kernel_inbox_receive(struct kernel_inbox *inbox, int descriptor);
const struct kernel_datagram *kernel_inbox_datagrams(const struct kernel_inbox *inbox);

enum { KERNEL_SEGMENTS = 64 };

/// Datagrams of equal length to one destination; the last may be shorter.
struct kernel_segments {
    struct kernel_address remote;
    /// Source address; if high and low are 0, the kernel chooses it.
    struct kernel_address local;
    /// Outgoing interface; 0 to use the routing table.
    uint32_t interface;
    const uint8_t *first;
    /// Distance between the starts of two datagrams, in bytes.
    uint32_t stride;
    /// At most KERNEL_SEGMENTS.
    uint32_t count;
    uint32_t length;
    uint32_t last_length;
};
/// Sends a run in one call, by UDP_SEGMENT if it has several datagrams; returns 0.
int kernel_send_segments(int descriptor, bool ipv6, const struct kernel_segments *run);

/// Maximum number of runs of one call.
enum { KERNEL_RUNS = 32 };
/// Maximum number of datagrams of one call.
enum { KERNEL_RUNS_SEGMENTS = 320 };

/// Sends runs in their order, in one call where possible; returns the number of those sent.
///
/// If that is less than `count`, `error` is the errno of the next one.
int kernel_send_runs(int descriptor, bool ipv6, const struct kernel_segments *runs, uint32_t count,
                     int *error);

// TCP

/// Opens a non-blocking listening socket.
int kernel_tcp_listen(struct kernel_address address, bool ipv6, int backlog);
/// Sets the backlog of a listening socket, and makes it non-blocking.
int kernel_listen_again(int descriptor, int backlog);
/// Accepts the next connection of a listening socket as non-blocking, and stores the peer's
/// address.
///
/// The connection sends data at once (TCP_NODELAY), buffers about `unsent` unsent bytes, and fails
/// if the peer acknowledges nothing for `timeout` milliseconds.
int kernel_tcp_accept(int descriptor, int unsent, int timeout, struct kernel_address *remote);

/// Begins a connection as non-blocking, and returns its socket; the first write that the kernel
/// takes shows that it is there. It sends data at once (TCP_NODELAY), and fails if the peer
/// acknowledges nothing for `timeout` milliseconds.
int kernel_tcp_connect(struct kernel_address address, bool ipv6, int timeout);

/// Returns the bytes of a TCP connection that were never sent; an error on other sockets.
int kernel_tcp_unsent(int descriptor);

// Unix-domain sockets

/// Opens a non-blocking listening socket, and creates its file with `mode`.
int kernel_unix_listen(const char *path, unsigned mode, int backlog);
/// Opens a connected, non-blocking socket.
int kernel_unix_connect(const char *path);
int kernel_accept(int descriptor);
/// Opens a connected, non-blocking datagram socket; a leading `@` means the abstract namespace.
int kernel_notify_connect(const char *path);
/// Opens `path` and locks it exclusively without waiting; closing it releases the lock.
///
/// The lock's holder may unlink the file: a lock on an unlinked file does not count.
int kernel_lock_file(const char *path, unsigned mode);
/// Locks an open file as `kernel_lock_file` does; succeeds if this open file has the lock already.
int kernel_lock_again(int descriptor);
/// Returns whether the file at `path`, links not followed, is the open file.
bool kernel_is_file(int descriptor, const char *path);
/// Stores the path that a Unix-domain socket is bound to, without a closing zero; returns its
/// length, or 0 if it has none.
int kernel_unix_path(
    int descriptor, uint8_t *KERNEL_COUNTED_BY(capacity) path KERNEL_NOESCAPE, int64_t capacity);
/// Type of the file at a path; links are not followed.
enum { KERNEL_FILE_NONE = 0, KERNEL_FILE_SOCKET = 1, KERNEL_FILE_LINK = 2, KERNEL_FILE_OTHER = 3 };
int kernel_file_kind(const char *path);

struct kernel_credentials {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
};
/// Stores the credentials of the connected peer (SO_PEERCRED).
int kernel_peer_credentials(int descriptor, struct kernel_credentials *credentials);

// Descriptors from a process to another

/// Kinds of `kernel_socket_kind`; the family is a bit of its own.
enum {
    KERNEL_SOCKET_OTHER = 0,
    KERNEL_SOCKET_UDP = 1,
    KERNEL_SOCKET_TCP_LISTENER = 2,
    KERNEL_SOCKET_UNIX_LISTENER = 3,
    KERNEL_SOCKET_IPV6 = 16,
};
/// Returns the kind of an open socket; an error on other files.
int kernel_socket_kind(int descriptor);
/// Sets or clears FD_CLOEXEC.
int kernel_set_close_on_exec(int descriptor, bool close);
/// Moves a descriptor that is below `limit` to a free number from there on, closed on exec; returns
/// its number.
int kernel_move_descriptor(int descriptor, int limit);
/// Opens /dev/null at all free numbers below `end`, closed on exec.
void kernel_occupy_descriptors(int end);
/// Returns whether two descriptors stand for the same open file, for example the same socket.
bool kernel_same_file(int one, int other);

enum { KERNEL_NOTIFY_NAME = 8, KERNEL_NOTIFY_DESCRIPTORS = 253 };
/// Opens a non-blocking datagram socket for notifications (sd_notify(3)), which reports their
/// senders. Its name in the abstract namespace is the kernel's choice; stored with a leading `@`
/// and a closing zero.
int kernel_notify_listen(char name[KERNEL_NOTIFY_NAME]);
/// Received notification.
struct kernel_notification {
    /// Bytes of text; a negated errno if there is no notification.
    int length;
    /// Process that sent it; 0 if unknown.
    int pid;
    /// Number of received descriptors, all closed on exec. The receiver has to close them.
    int descriptors;
    /// Whether text or descriptors were lost, for lack of space or of free descriptors.
    bool truncated;
};
struct kernel_notification kernel_notify_receive(
    int descriptor, uint8_t *KERNEL_COUNTED_BY(capacity) text KERNEL_NOESCAPE, int64_t capacity,
    int *KERNEL_COUNTED_BY(limit) descriptors KERNEL_NOESCAPE, int64_t limit);
/// Sends a notification, with `attached` unless that is negative. While the receiver's queue is
/// full it waits, at most `milliseconds`.
int kernel_notify_send(
    int descriptor, const uint8_t *KERNEL_COUNTED_BY(count) text KERNEL_NOESCAPE, int64_t count,
    int attached, int milliseconds);

// Processes

/// Child process and our end of a socket or pipe that it has; `pid` is a negated errno on
/// failure.
struct kernel_child {
    int pid;
    int descriptor;
};
// Swift 6.3.1 crashes on the span overloads of these two in release mode, so they have none.

/// Starts the program that is the first of `arguments`, each of which ends with a zero byte, in a
/// process group of its own and with default signal handling; returns its process id.
///
/// `descriptors` become its descriptors from 3 on; besides it inherits 0, 1 and 2. `environment`
/// is given like `arguments`; empty values of LISTEN_PID and WATCHDOG_PID become its process id. It
/// gets `death_signal` when the calling thread ends. Fails if the program cannot be executed.
int kernel_start_process(
    const uint8_t *arguments, int64_t arguments_count, const uint8_t *environment,
    int64_t environment_count, const int *descriptors, int64_t count, int death_signal);
/// Replaces this process by the program `file`, given like that of `kernel_start_process`.
///
/// Returns only on failure, with all descriptors as they were. Other threads must not open, close
/// or use descriptors meanwhile. Blocked and ignored signals stay blocked and ignored, so that none
/// is lost in between.
int kernel_replace_process(
    const char *file, const uint8_t *arguments, int64_t arguments_count,
    const uint8_t *environment, int64_t environment_count, const int *descriptors, int64_t count);
/// Ended child.
struct kernel_ended {
    /// Its process id; 0 if no child has ended.
    int pid;
    /// Exit status; 0 if a signal ended it.
    int status;
    /// Signal that ended it, or 0.
    int signal;
};
/// Reaps any one child that has ended. Does not wait.
struct kernel_ended kernel_reap(void);
int kernel_process_id(void);
/// Sends a signal to a process.
int kernel_send_signal(int pid, int signal);

/// Facts about a program's file, links followed.
struct kernel_program {
    uint64_t device;
    uint64_t number;
    /// Time of the last change of the file or its attributes, in nanoseconds since 1970.
    int64_t changed;
    uint32_t owner;
    bool regular;
    /// Whether this process may execute it.
    bool executable;
    /// Whether its group or all may write to it.
    bool writable_by_others;
};
int kernel_program_facts(const char *path, struct kernel_program *facts);
/// Starts `path` with one argument in its own process group and with default signal handling.
///
/// `descriptor` of the result reads its standard output, without blocking. Its standard input and
/// error are /dev/null, and it inherits no other descriptor.
struct kernel_child kernel_spawn_reading(const char *path, const char *argument);

/// Starts the program at `path` as `name` with one argument, in its own process group and with
/// default signal handling.
///
/// It inherits our standard error and no other descriptor; its standard output is discarded. Our
/// end of the socket is non-blocking.
struct kernel_child kernel_spawn(const char *path, const char *name, const char *argument);
/// Returns whether a child has ended, and if so reaps it. Does not wait.
bool kernel_child_ended(int pid);
/// Sends SIGKILL; call `kernel_child_ended` until it returns true.
void kernel_child_kill(int pid);
/// Waits until a child that was killed has ended, and reaps it.
void kernel_child_await(int pid);
/// Ignores SIGPIPE and lowers this process's scheduling priority.
void kernel_serve_in_background(void);

/// Parts of `kernel_confine` that the system does not support.
enum {
    /// First place in the order in which the system ends processes when memory is short.
    KERNEL_UNCONFINED_OOM = 1,
    KERNEL_UNCONFINED_MEMORY = 2,
    KERNEL_UNCONFINED_PRIVILEGES = 4,
    /// Landlock.
    KERNEL_UNCONFINED_FILES = 8,
    /// seccomp.
    KERNEL_UNCONFINED_CALLS = 16,
};
/// Permanently drops all rights of this process that decoding, and sending to a server, do not
/// need.
///
/// Afterwards it reads only libraries, certificates, the resolver's files and `readable` (if empty,
/// no further file). It writes no file, reaches no Unix-domain socket, starts and signals no other
/// process, gains no privilege, and has at most `memory` bytes of address space. When the system
/// runs out of memory, this process is ended first. Call it before there are other threads. Returns
/// the parts that are unavailable.
unsigned kernel_confine(int64_t memory, const char *readable);

// Bytes

/// Reads bytes; returns their number, 0 at the end.
int64_t kernel_read(
    int descriptor, uint8_t *KERNEL_COUNTED_BY(count) bytes KERNEL_NOESCAPE, int64_t count);
/// Writes bytes; returns their number. Never raises SIGPIPE on a socket.
int64_t kernel_write(
    int descriptor, const uint8_t *KERNEL_COUNTED_BY(count) bytes KERNEL_NOESCAPE, int64_t count);
/// Opens /dev/null for each closed descriptor among 0, 1 and 2, so that no other file gets its
/// number and is written to by mistake.
void kernel_fill_standard_descriptors(void);
/// Opens a file for reading.
int kernel_open_file(const char *path);
/// Opens /dev/null, as a reserve descriptor for a full descriptor table.
int kernel_open_null(void);
void kernel_close(int descriptor);

// Terminals

/// Settings of a terminal, to be restored.
struct kernel_terminal {
    bool valid;
    uint8_t settings[128];
};
/// Makes a terminal pass on each key at once, unseen and without signals; returns its settings from
/// before, not valid if the descriptor is no terminal.
struct kernel_terminal kernel_terminal_begin(int descriptor);
void kernel_terminal_end(int descriptor, struct kernel_terminal before);

struct kernel_terminal_size {
    int rows;
    int columns;
};
/// Size of a terminal; 0 if it is unknown.
struct kernel_terminal_size kernel_terminal_measure(int descriptor);

// Facts for diagnosis

/// State of the system's clock (adjtimex(2)).
struct kernel_clock {
    /// Whether the answer is valid, and whether something keeps the clock synchronized.
    bool known;
    bool synchronized;
    /// Largest possible error, in microseconds.
    int64_t error;
};
struct kernel_clock kernel_clock_state(void);

/// A bound UDP or listening TCP socket of this network namespace.
struct kernel_bound_socket {
    struct kernel_address address;
    bool ipv6;
    bool tcp;
    /// Sizes of the buffers, without the kernel's doubling.
    uint32_t receive_buffer;
    uint32_t send_buffer;
    /// Bytes that wait to be received.
    uint32_t waiting;
    /// Datagrams dropped since the socket was opened, modulo 2^32.
    uint32_t drops;
};
/// Returns the number of such sockets and fills in the first `capacity` of them (sock_diag(7)).
int kernel_bound_sockets(struct kernel_bound_socket *facts, int capacity);

/// Stores the process that listens at a Unix-domain socket, by connecting to it.
int kernel_unix_listener(const char *path, struct kernel_credentials *credentials);

/// Whether sockets can send several datagrams in one call (UDP_SEGMENT); -errno if not.
int kernel_udp_segments_supported(void);
