#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <termios.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

_Static_assert(sizeof(struct termios) <= sizeof(((struct kernel_terminal *)0)->settings),
               "the settings have room");

struct kernel_terminal kernel_terminal_begin(int descriptor) {
    struct kernel_terminal before = {.valid = false};
    struct termios settings;
    if (tcgetattr(descriptor, &settings) != 0) return before;
    memcpy(before.settings, &settings, sizeof settings);
    settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    settings.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    before.valid = tcsetattr(descriptor, TCSAFLUSH, &settings) == 0;
    return before;
}

void kernel_terminal_end(int descriptor, struct kernel_terminal before) {
    if (!before.valid) return;
    struct termios settings;
    memcpy(&settings, before.settings, sizeof settings);
    tcsetattr(descriptor, TCSAFLUSH, &settings);
}

struct kernel_terminal_size kernel_terminal_measure(int descriptor) {
    struct winsize size = {0};
    struct kernel_terminal_size found = {0, 0};
    if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return found;
    found.rows = size.ws_row;
    found.columns = size.ws_col;
    return found;
}

struct kernel_clock kernel_clock_state(void) {
    struct timex clock = {0};
    struct kernel_clock found = {0};
    if (adjtimex(&clock) < 0) return found;
    found.known = true;
    found.synchronized = (clock.status & STA_UNSYNC) == 0;
    found.error = clock.maxerror;
    return found;
}

/// Stores what one answer says of a socket.
static void take(const struct inet_diag_msg *message, size_t length, bool tcp,
                 struct kernel_bound_socket *facts) {
    memset(facts, 0, sizeof *facts);
    facts->tcp = tcp;
    facts->ipv6 = message->idiag_family == AF_INET6;
    uint8_t bytes[16] = {0};
    if (facts->ipv6) {
        memcpy(bytes, message->id.idiag_src, 16);
    } else {
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, message->id.idiag_src, 4);
    }
    for (int index = 0; index < 8; index++) {
        facts->address.high = facts->address.high << 8 | bytes[index];
        facts->address.low = facts->address.low << 8 | bytes[index + 8];
    }
    facts->address.port = ntohs(message->id.idiag_sport);
    facts->waiting = message->idiag_rqueue;
    const uint8_t *next = (const uint8_t *)(message + 1);
    size_t left = length - sizeof *message;
    while (left >= sizeof(struct nlattr)) {
        struct nlattr attribute;
        memcpy(&attribute, next, sizeof attribute);
        if (attribute.nla_len < sizeof attribute || attribute.nla_len > left) return;
        uint32_t memory[SK_MEMINFO_VARS] = {0};
        size_t size = attribute.nla_len - sizeof attribute;
        if (attribute.nla_type == INET_DIAG_SKMEMINFO) {
            memcpy(memory, next + sizeof attribute, size < sizeof memory ? size : sizeof memory);
            facts->receive_buffer = memory[SK_MEMINFO_RCVBUF] / 2;
            facts->send_buffer = memory[SK_MEMINFO_SNDBUF] / 2;
            facts->drops = memory[SK_MEMINFO_DROPS];
        }
        size_t step = (attribute.nla_len + 3u) & ~3u;
        if (step > left) return;
        next += step;
        left -= step;
    }
}

/// Asks for the sockets of one family and protocol; returns their number, added to `count`.
static int ask(int socket, int family, bool tcp, struct kernel_bound_socket *facts, int capacity,
               int count) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {0};
    question.header.nlmsg_len = sizeof question;
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    question.request.sdiag_family = (uint8_t)family;
    question.request.sdiag_protocol = tcp ? IPPROTO_TCP : IPPROTO_UDP;
    question.request.idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1);
    // TCP_LISTEN; a UDP socket that is bound and not connected is in TCP_CLOSE.
    question.request.idiag_states = tcp ? 1 << 10 : 1 << 7;
    if (send(socket, &question, sizeof question, 0) < 0) return -errno;
    for (;;) {
        _Alignas(struct nlmsghdr) uint8_t bytes[32768];
        ssize_t length = recv(socket, bytes, sizeof bytes, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return -errno;
        const struct nlmsghdr *header = (const struct nlmsghdr *)bytes;
        for (int left = (int)length; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
            if (header->nlmsg_type == NLMSG_DONE) return count;
            if (header->nlmsg_type == NLMSG_ERROR) {
                const struct nlmsgerr *error = NLMSG_DATA(header);
                return header->nlmsg_len >= NLMSG_LENGTH(sizeof *error) && error->error < 0
                           ? error->error
                           : -EIO;
            }
            size_t size = header->nlmsg_len - NLMSG_HDRLEN;
            if (size < sizeof(struct inet_diag_msg)) continue;
            if (count < capacity) take(NLMSG_DATA(header), size, tcp, facts + count);
            count++;
        }
    }
}

int kernel_bound_sockets(struct kernel_bound_socket *facts, int capacity) {
    int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0) return -errno;
    struct timeval patience = {.tv_sec = 2};
    setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int count = 0;
    for (int turn = 0; turn < 4 && count >= 0; turn++) {
        count = ask(netlink, turn & 1 ? AF_INET6 : AF_INET, turn >= 2, facts, capacity, count);
    }
    close(netlink);
    return count;
}

int kernel_unix_listener(const char *path, struct kernel_credentials *credentials) {
    int descriptor = kernel_unix_connect(path);
    if (descriptor < 0) return descriptor;
    int result = kernel_peer_credentials(descriptor, credentials);
    close(descriptor);
    return result;
}

int kernel_udp_segments_supported(void) {
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    int size = 1200;
    int result = setsockopt(descriptor, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size);
    int error = errno;
    close(descriptor);
    return result < 0 ? -error : 0;
}
