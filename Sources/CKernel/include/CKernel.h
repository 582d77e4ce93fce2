/// What the Linux kernel offers beyond what Swift's Glibc module exports.
///
/// Every function returns a negated errno on failure and never sets policy: no logging, no
/// retrying except after EINTR, no state outside its arguments.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For Swift alone: with these it imports a pointer and its count as a span. The C compiler would
// want the count before the pointer.
#ifdef __swift__
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
/// User and system time of this process, in nanoseconds.
int64_t kernel_process_nanoseconds(void);
/// User and system time of the calling thread, in nanoseconds.
int64_t kernel_thread_nanoseconds(void);
/// Names the calling thread for who looks at the process; the first 15 bytes count.
void kernel_name_thread(const char *name);
/// Asks for short turns on a processor for the calling thread: 0.1 ms, the least there is.
///
/// Its share stays what it is. But one that wakes with a short turn goes before a thread that is
/// in the midst of a long one (Linux 6.12 or later, sched_setattr(2)); otherwise it waits until
/// that one has had its turn, some 3 ms. Returns 0 or -errno; older kernels take it and do nothing.
int kernel_take_short_turns(void);
/// Gives what is free of the heap back to the system.
void kernel_trim_heap(void);
/// Bytes that are allocated now, in the heap and beside it (mallinfo(3)); -1 where nothing tells.
///
/// Unlike resident memory it counts reserved pages that were never touched, and no free ones.
int64_t kernel_heap_bytes(void);

// Waiting

int kernel_epoll_create(void);
/// What a descriptor waits for; errors and hang-ups are always told.
enum { KERNEL_READABLE = 1, KERNEL_WRITABLE = 2, KERNEL_HUNG_UP = 4 };
int kernel_epoll_add(int epoll, int descriptor, uint32_t interest, uint64_t token);
int kernel_epoll_change(int epoll, int descriptor, uint32_t interest, uint64_t token);
int kernel_epoll_remove(int epoll, int descriptor);

struct kernel_readiness {
    uint64_t token;
    uint32_t events;
};

/// Waits at most `nanoseconds`, for ever when negative; returns how many of `ready` it filled.
/// An interrupted wait counts as none.
int kernel_epoll_wait(
    int epoll, struct kernel_readiness *KERNEL_COUNTED_BY(capacity) ready KERNEL_NOESCAPE,
    int capacity, int64_t nanoseconds);

int kernel_eventfd_create(void);
int kernel_eventfd_signal(int descriptor);
/// Takes the signals that were given; 0 where there were none.
int kernel_eventfd_drain(int descriptor);

/// Ignores SIGPIPE and SIGHUP; blocks SIGTERM and SIGINT in this thread and all that it starts,
/// and returns a descriptor that tells of them.
int kernel_signals_open(void);
/// The next signal's number, 0 where there is none.
int kernel_signals_next(int descriptor);
/// Undoes the blocking of `kernel_signals_open` in this thread.
void kernel_signals_close(int descriptor);

// Addresses

/// An IP address and port; IPv4 is IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
struct kernel_address {
    uint64_t high;
    uint64_t low;
    uint16_t port;
};

enum { KERNEL_ADDRESS_TEXT = 64 };

/// Reads a numeric address without port, brackets or scope.
bool kernel_address_parse(const char *text, struct kernel_address *address);
/// Writes the address without its port; returns the length without the closing zero.
int kernel_address_format(struct kernel_address address, char text[KERNEL_ADDRESS_TEXT]);

struct kernel_interface {
    struct kernel_address address;
    bool loopback;
    bool up;
};
/// Returns how many addresses the interfaces have, of which it fills the first `capacity`.
int kernel_interface_addresses(struct kernel_interface *interfaces, int capacity);

// UDP

/// A non-blocking bound socket that tells destination addresses and drops of its queue.
int kernel_udp_open(struct kernel_address address, bool ipv6);
/// A non-blocking UDP socket that has one peer: it hears of nobody else, and of that nobody listens
/// there (ECONNREFUSED, with what is sent next).
int kernel_udp_connect(struct kernel_address address, bool ipv6);
/// The address that a socket is bound to, IPv4 or IPv6.
int kernel_local_address(int descriptor, struct kernel_address *address);
/// Sets the kernel's buffer to `bytes`, over the system's limit where that is permitted;
/// returns what the kernel then says, without its doubling.
int kernel_set_receive_buffer(int descriptor, int bytes);
int kernel_set_send_buffer(int descriptor, int bytes);

/// Has the kernel stamp each datagram that comes with CLOCK_REALTIME.
int kernel_stamp_arrivals(int descriptor);

/// One received datagram, valid until the next receive into the same inbox.
struct kernel_datagram {
    const uint8_t *bytes;
    uint32_t length;
    /// More came than fitted: the rest is lost.
    bool truncated;
    struct kernel_address remote;
    /// Our address, where the kernel told it; its port is 0.
    struct kernel_address local;
    /// The interface that it came in on; 0 where the kernel told none.
    uint32_t interface;
    /// Datagrams the socket's queue has dropped since it was opened, modulo 2^32.
    uint32_t queue_drops;
    bool has_queue_drops;
    /// When it came to the machine, in nanoseconds since 1970; 0 without a stamp.
    int64_t arrival;
};

/// Places for the datagrams of one receive call.
struct kernel_inbox;
struct kernel_inbox *kernel_inbox_create(int capacity, int size);
void kernel_inbox_destroy(struct kernel_inbox *inbox);
/// Receives what is there, up to the inbox's capacity; returns how many.
int kernel_inbox_receive(struct kernel_inbox *inbox, int descriptor);
const struct kernel_datagram *kernel_inbox_datagrams(const struct kernel_inbox *inbox);

enum { KERNEL_SEGMENTS = 64 };

/// Datagrams of equal length to one destination, the last of which may be shorter.
struct kernel_run {
    struct kernel_address remote;
    /// The source address; high and low 0: the kernel's choice.
    struct kernel_address local;
    /// The interface to leave by; 0: as the routes say.
    uint32_t interface;
    const uint8_t *first;
    /// Bytes from the start of one datagram to the start of the next.
    uint32_t stride;
    /// At most KERNEL_SEGMENTS.
    uint32_t count;
    uint32_t length;
    uint32_t last_length;
};
/// Sends a run in one call (UDP_SEGMENT where it has more than one); returns 0.
int kernel_send_run(int descriptor, bool ipv6, const struct kernel_run *run);

// TCP

/// A non-blocking listening socket.
int kernel_tcp_listen(struct kernel_address address, bool ipv6, int backlog);
/// The next connection of a listening socket, non-blocking, and who made it.
///
/// It sends at once what it is given (TCP_NODELAY), keeps about `unsent` bytes that have not left
/// yet, and ends when the peer has taken nothing for `timeout` milliseconds.
int kernel_tcp_accept(int descriptor, int unsent, int timeout, struct kernel_address *remote);

/// Bytes of a TCP connection that have not left for the first time; an error on other sockets.
int kernel_tcp_unsent(int descriptor);

// Unix-domain sockets

/// A non-blocking listening socket, its file made with `mode`.
int kernel_unix_listen(const char *path, unsigned mode, int backlog);
/// A connected, non-blocking socket, or why there is none.
int kernel_unix_connect(const char *path);
int kernel_accept(int descriptor);
/// A connected, non-blocking datagram socket; `@` at the start stands for the abstract namespace.
int kernel_notify_connect(const char *path);
/// Opens `path` and locks it exclusively without waiting; closing lets go.
///
/// Who holds the lock may unlink the file: a lock on a file that is gone is not taken for one.
int kernel_lock_file(const char *path, unsigned mode);
/// What a path is, links not followed.
enum { KERNEL_FILE_NONE = 0, KERNEL_FILE_SOCKET = 1, KERNEL_FILE_LINK = 2, KERNEL_FILE_OTHER = 3 };
int kernel_file_kind(const char *path);

struct kernel_credentials {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
};
/// Who connected (SO_PEERCRED).
int kernel_peer_credentials(int descriptor, struct kernel_credentials *credentials);

// Processes

/// A child and our end of the socket that is its standard input; a negative pid says why not.
struct kernel_child {
    int pid;
    int descriptor;
};
/// Starts the program at `path`, as `name` and with one argument, in a process group of its own, with signals as they are
/// by default. It has our standard error and no other descriptor of ours; what it writes to
/// standard output is lost. Our end of the socket does not block.
struct kernel_child kernel_spawn(const char *path, const char *name, const char *argument);
/// Whether a child has ended; its number is given up then. Does not wait.
bool kernel_child_ended(int pid);
/// SIGKILL; `kernel_child_ended` has to be asked until it says so.
void kernel_child_kill(int pid);
/// Ignores SIGPIPE, and lets others run before this process.
void kernel_serve_in_background(void);

/// The parts of `kernel_confine` that this system has not.
enum {
    /// The order in which processes end when memory is short.
    KERNEL_UNCONFINED_ORDER = 1,
    KERNEL_UNCONFINED_MEMORY = 2,
    KERNEL_UNCONFINED_PRIVILEGES = 4,
    /// Landlock.
    KERNEL_UNCONFINED_FILES = 8,
    /// seccomp.
    KERNEL_UNCONFINED_CALLS = 16,
};
/// Gives up for good, in this process, what decoding and sending to a server do not need.
///
/// Afterwards it reads nothing but libraries, certificates, the resolver's files and `readable`
/// (empty: no further file), writes no file, reaches no Unix-domain socket, starts and signals no
/// other process, gains no privilege, and has at most `memory` bytes of addresses. When the system
/// runs out of memory, it ends first. Call it before there are other threads. Returns the parts
/// that could not be had.
unsigned kernel_confine(int64_t memory, const char *readable);

// Bytes

/// Returns how many bytes came, 0 at the end.
int64_t kernel_read(
    int descriptor, uint8_t *KERNEL_COUNTED_BY(count) bytes KERNEL_NOESCAPE, int64_t count);
/// Returns how many bytes went; never raises SIGPIPE on a socket.
int64_t kernel_write(
    int descriptor, const uint8_t *KERNEL_COUNTED_BY(count) bytes KERNEL_NOESCAPE, int64_t count);
/// Opens /dev/null for each of the descriptors 0, 1, 2 that is closed, so that nothing else
/// gets its number and is written to by mistake.
void kernel_fill_standard_descriptors(void);
/// Opens a file for reading.
int kernel_open_file(const char *path);
/// Opens /dev/null: a descriptor in reserve for when the table is full.
int kernel_open_null(void);
void kernel_close(int descriptor);
