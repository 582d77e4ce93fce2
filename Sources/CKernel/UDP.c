#define _GNU_SOURCE 1

#include "CKernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static const uint64_t mapped_prefix = 0xffff00000000;

static uint64_t load_64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int index = 0; index < 8; index++) value = value << 8 | bytes[index];
    return value;
}

static void store_64(uint8_t *bytes, uint64_t value) {
    for (int index = 7; index >= 0; index--, value >>= 8) bytes[index] = (uint8_t)value;
}

static struct kernel_address from_ipv4(struct in_addr address) {
    return (struct kernel_address){.high = 0, .low = mapped_prefix | ntohl(address.s_addr)};
}

static struct kernel_address from_ipv6(const struct in6_addr *address) {
    return (struct kernel_address){.high = load_64(address->s6_addr),
                                   .low = load_64(address->s6_addr + 8)};
}

static struct in_addr to_ipv4(struct kernel_address address) {
    return (struct in_addr){.s_addr = htonl((uint32_t)address.low)};
}

static struct in6_addr to_ipv6(struct kernel_address address) {
    struct in6_addr bytes;
    store_64(bytes.s6_addr, address.high);
    store_64(bytes.s6_addr + 8, address.low);
    return bytes;
}

static bool is_link_local(struct kernel_address address) {
    return address.high >> 54 == 0xfe80 >> 6;
}

static struct kernel_address from_sockaddr(const struct sockaddr_storage *storage) {
    if (storage->ss_family == AF_INET6) {
        const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)storage;
        struct kernel_address result = from_ipv6(&address->sin6_addr);
        result.port = ntohs(address->sin6_port);
        return result;
    }
    const struct sockaddr_in *address = (const struct sockaddr_in *)storage;
    struct kernel_address result = from_ipv4(address->sin_addr);
    result.port = ntohs(address->sin_port);
    return result;
}

/// Fills `storage` and returns its length.
static socklen_t to_sockaddr(struct kernel_address address, bool ipv6, uint32_t interface,
                             struct sockaddr_storage *storage) {
    if (ipv6) {
        struct sockaddr_in6 *socket_address = (struct sockaddr_in6 *)storage;
        *socket_address = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                                .sin6_port = htons(address.port),
                                                .sin6_addr = to_ipv6(address)};
        if (is_link_local(address)) socket_address->sin6_scope_id = interface;
        return sizeof *socket_address;
    }
    struct sockaddr_in *socket_address = (struct sockaddr_in *)storage;
    *socket_address = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_port = htons(address.port),
                                           .sin_addr = to_ipv4(address)};
    return sizeof *socket_address;
}

bool kernel_address_parse(const char *text, struct kernel_address *address) {
    struct in_addr ipv4;
    struct in6_addr ipv6;
    if (inet_pton(AF_INET, text, &ipv4) == 1) {
        *address = from_ipv4(ipv4);
        return true;
    }
    if (inet_pton(AF_INET6, text, &ipv6) != 1) return false;
    *address = from_ipv6(&ipv6);
    return true;
}

int kernel_address_format(struct kernel_address address, char text[KERNEL_ADDRESS_TEXT]) {
    bool ipv4 = address.high == 0 && address.low >> 32 == 0xffff;
    struct in_addr short_address = to_ipv4(address);
    struct in6_addr long_address = to_ipv6(address);
    if (ipv4) inet_ntop(AF_INET, &short_address, text, KERNEL_ADDRESS_TEXT);
    else inet_ntop(AF_INET6, &long_address, text, KERNEL_ADDRESS_TEXT);
    return (int)strlen(text);
}

int kernel_interface_addresses(struct kernel_interface *interfaces, int capacity) {
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0) return -errno;
    int count = 0;
    for (struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        if (entry->ifa_addr == NULL) continue;
        int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        if (count < capacity) {
            struct sockaddr_storage storage = {0};
            memcpy(&storage, entry->ifa_addr,
                   family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
            interfaces[count].address = from_sockaddr(&storage);
            interfaces[count].loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
            interfaces[count].up = (entry->ifa_flags & IFF_UP) != 0;
        }
        count++;
    }
    freeifaddrs(list);
    return count;
}

static int enable(int descriptor, int level, int option) {
    int on = 1;
    return setsockopt(descriptor, level, option, &on, sizeof on) < 0 ? -errno : 0;
}

int kernel_udp_prepare(int descriptor, bool ipv6) {
    int status = enable(descriptor, SOL_SOCKET, SO_RXQ_OVFL);
    if (status != 0) return status;
    return ipv6 ? enable(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO)
                : enable(descriptor, IPPROTO_IP, IP_PKTINFO);
}

int kernel_udp_open(struct kernel_address address, bool ipv6) {
    int descriptor =
        socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    int status = kernel_udp_prepare(descriptor, ipv6);
    if (status == 0 && ipv6) status = enable(descriptor, IPPROTO_IPV6, IPV6_V6ONLY);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(address, ipv6, 0, &storage);
    if (status == 0 && bind(descriptor, (struct sockaddr *)&storage, length) < 0) status = -errno;
    if (status == 0) return descriptor;
    close(descriptor);
    return status;
}

int kernel_udp_connect(struct kernel_address address, bool ipv6) {
    int descriptor =
        socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(address, ipv6, 0, &storage);
    if (connect(descriptor, (struct sockaddr *)&storage, length) == 0) return descriptor;
    int status = -errno;
    close(descriptor);
    return status;
}

int kernel_local_address(int descriptor, struct kernel_address *address) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    if (getsockname(descriptor, (struct sockaddr *)&storage, &length) < 0) return -errno;
    *address = from_sockaddr(&storage);
    return 0;
}

int kernel_tcp_listen(struct kernel_address address, bool ipv6, int backlog) {
    int descriptor =
        socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    // This lets a restarted daemon use its port again at once.
    int status = enable(descriptor, SOL_SOCKET, SO_REUSEADDR);
    if (status == 0 && ipv6) status = enable(descriptor, IPPROTO_IPV6, IPV6_V6ONLY);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(address, ipv6, 0, &storage);
    if (status == 0 && bind(descriptor, (struct sockaddr *)&storage, length) < 0) status = -errno;
    if (status == 0 && listen(descriptor, backlog) < 0) status = -errno;
    if (status == 0) return descriptor;
    close(descriptor);
    return status;
}

static int set_tcp_option(int descriptor, int option, int value) {
    return setsockopt(descriptor, IPPROTO_TCP, option, &value, sizeof value) < 0 ? -errno : 0;
}

int kernel_tcp_accept(int descriptor, int unsent, int timeout, struct kernel_address *remote) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    int connection;
    do {
        connection = accept4(descriptor, (struct sockaddr *)&storage, &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (connection < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (connection < 0) return -errno;
    *remote = from_sockaddr(&storage);
    int status = set_tcp_option(connection, TCP_NODELAY, 1);
    if (status == 0) status = set_tcp_option(connection, TCP_NOTSENT_LOWAT, unsent);
    if (status == 0) status = set_tcp_option(connection, TCP_USER_TIMEOUT, timeout);
    if (status == 0) return connection;
    close(connection);
    return status;
}

int kernel_tcp_connect(struct kernel_address address, bool ipv6, int timeout) {
    int descriptor =
        socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(address, ipv6, 0, &storage);
    int status = set_tcp_option(descriptor, TCP_NODELAY, 1);
    if (status == 0) status = set_tcp_option(descriptor, TCP_USER_TIMEOUT, timeout);
    if (status == 0 && connect(descriptor, (struct sockaddr *)&storage, length) < 0 &&
        errno != EINPROGRESS) {
        status = -errno;
    }
    if (status == 0) return descriptor;
    close(descriptor);
    return status;
}

int kernel_tcp_unsent(int descriptor) {
    int bytes = 0;
    return ioctl(descriptor, SIOCOUTQNSD, &bytes) < 0 ? -errno : bytes;
}

static int set_buffer(int descriptor, int forced, int option, int bytes) {
    if (setsockopt(descriptor, SOL_SOCKET, forced, &bytes, sizeof bytes) < 0
        && setsockopt(descriptor, SOL_SOCKET, option, &bytes, sizeof bytes) < 0) {
        return -errno;
    }
    int got = 0;
    socklen_t length = sizeof got;
    if (getsockopt(descriptor, SOL_SOCKET, option, &got, &length) < 0) return -errno;
    return got / 2;
}

int kernel_set_receive_buffer(int descriptor, int bytes) {
    return set_buffer(descriptor, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

int kernel_set_send_buffer(int descriptor, int bytes) {
    return set_buffer(descriptor, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

int kernel_timestamp_arrivals(int descriptor) {
    return enable(descriptor, SOL_SOCKET, SO_TIMESTAMPNS);
}

enum {
    /// The larger of both packet infos, IPV6_PKTINFO, plus SO_RXQ_OVFL and the timestamp.
    control_size = CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint32_t))
                   + CMSG_SPACE(sizeof(struct timespec)),
};

struct kernel_inbox {
    int capacity;
    int size;
    uint8_t *bytes;
    uint8_t *control;
    struct sockaddr_storage *addresses;
    struct iovec *places;
    struct mmsghdr *messages;
    struct kernel_datagram *datagrams;
};

struct kernel_inbox *kernel_inbox_create(int capacity, int size) {
    struct kernel_inbox *inbox = calloc(1, sizeof *inbox);
    if (inbox == NULL) return NULL;
    size_t count = (size_t)capacity;
    inbox->capacity = capacity;
    inbox->size = size;
    inbox->bytes = aligned_alloc(64, (count * (size_t)size + 63) / 64 * 64);
    inbox->control = calloc(count, control_size);
    inbox->addresses = calloc(count, sizeof *inbox->addresses);
    inbox->places = calloc(count, sizeof *inbox->places);
    inbox->messages = calloc(count, sizeof *inbox->messages);
    inbox->datagrams = calloc(count, sizeof *inbox->datagrams);
    if (!inbox->bytes || !inbox->control || !inbox->addresses || !inbox->places
        || !inbox->messages || !inbox->datagrams) {
        kernel_inbox_destroy(inbox);
        return NULL;
    }
    for (int index = 0; index < capacity; index++) {
        inbox->places[index] = (struct iovec){
            .iov_base = inbox->bytes + (size_t)index * (size_t)size, .iov_len = (size_t)size};
        inbox->messages[index].msg_hdr = (struct msghdr){
            .msg_name = &inbox->addresses[index],
            .msg_namelen = sizeof inbox->addresses[index],
            .msg_iov = &inbox->places[index],
            .msg_iovlen = 1,
            .msg_control = inbox->control + (size_t)index * control_size,
            .msg_controllen = control_size,
        };
    }
    return inbox;
}

void kernel_inbox_destroy(struct kernel_inbox *inbox) {
    free(inbox->bytes);
    free(inbox->control);
    free(inbox->addresses);
    free(inbox->places);
    free(inbox->messages);
    free(inbox->datagrams);
    free(inbox);
}

static void read_control(struct msghdr *header, struct kernel_datagram *datagram) {
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item != NULL;
         item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_RXQ_OVFL) {
            memcpy(&datagram->queue_drops, CMSG_DATA(item), sizeof datagram->queue_drops);
            datagram->has_queue_drops = true;
        } else if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(item), sizeof time);
            datagram->arrival = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        } else if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo information;
            memcpy(&information, CMSG_DATA(item), sizeof information);
            datagram->local = from_ipv4(information.ipi_spec_dst);
            datagram->interface = (uint32_t)information.ipi_ifindex;
        } else if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo information;
            memcpy(&information, CMSG_DATA(item), sizeof information);
            datagram->local = from_ipv6(&information.ipi6_addr);
            datagram->interface = information.ipi6_ifindex;
        }
    }
}

int kernel_inbox_receive(struct kernel_inbox *inbox, int descriptor) {
    int count = recvmmsg(descriptor, inbox->messages, (unsigned)inbox->capacity, MSG_DONTWAIT,
                         NULL);
    if (count < 0) return -errno;
    for (int index = 0; index < count; index++) {
        struct msghdr *header = &inbox->messages[index].msg_hdr;
        struct kernel_datagram *datagram = &inbox->datagrams[index];
        *datagram = (struct kernel_datagram){
            .bytes = inbox->places[index].iov_base,
            .length = inbox->messages[index].msg_len,
            .truncated = (header->msg_flags & MSG_TRUNC) != 0,
            .remote = from_sockaddr(&inbox->addresses[index]),
        };
        read_control(header, datagram);
        // Fields that the kernel wrote are reset here, so that only used entries cost time.
        header->msg_namelen = sizeof inbox->addresses[index];
        header->msg_controllen = control_size;
        header->msg_flags = 0;
    }
    return count;
}

const struct kernel_datagram *kernel_inbox_datagrams(const struct kernel_inbox *inbox) {
    return inbox->datagrams;
}

/// Appends a control item to `header`, whose buffer has room for it.
static void put_control(struct msghdr *header, int level, int type, const void *value,
                        size_t size) {
    struct cmsghdr *item = (struct cmsghdr *)((uint8_t *)header->msg_control
                                              + header->msg_controllen);
    item->cmsg_level = level;
    item->cmsg_type = type;
    item->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(item), value, size);
    header->msg_controllen += CMSG_SPACE(size);
}

static void put_source(struct msghdr *header, bool ipv6, const struct kernel_segments *run) {
    if (run->local.high == 0 && run->local.low == 0) return;
    if (ipv6) {
        struct in6_pktinfo information = {.ipi6_addr = to_ipv6(run->local),
                                          .ipi6_ifindex = run->interface};
        put_control(header, IPPROTO_IPV6, IPV6_PKTINFO, &information, sizeof information);
    } else {
        struct in_pktinfo information = {.ipi_spec_dst = to_ipv4(run->local),
                                         .ipi_ifindex = (int)run->interface};
        put_control(header, IPPROTO_IP, IP_PKTINFO, &information, sizeof information);
    }
}

enum {
    /// The larger of both packet infos, IPV6_PKTINFO, plus UDP_SEGMENT.
    run_control_size = CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t)),
};

/// Destination and control items of a run's header.
struct run_head {
    struct sockaddr_storage remote;
    _Alignas(struct cmsghdr) uint8_t control[run_control_size];
};

/// Makes the header of a run, with its datagrams in `places`.
static struct msghdr run_header(const struct kernel_segments *run, bool ipv6,
                                struct run_head *head, struct iovec *places) {
    for (uint32_t index = 0; index < run->count; index++) {
        places[index] = (struct iovec){
            .iov_base = (void *)(uintptr_t)(run->first + (size_t)index * run->stride),
            .iov_len = index + 1 == run->count ? run->last_length : run->length,
        };
    }
    struct msghdr header = {
        .msg_name = &head->remote,
        .msg_namelen = to_sockaddr(run->remote, ipv6, run->interface, &head->remote),
        .msg_iov = places,
        .msg_iovlen = run->count,
        .msg_control = head->control,
        .msg_controllen = 0,
    };
    put_source(&header, ipv6, run);
    if (run->count > 1) {
        uint16_t segment = (uint16_t)run->length;
        put_control(&header, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    }
    if (header.msg_controllen == 0) header.msg_control = NULL;
    return header;
}

int kernel_send_segments(int descriptor, bool ipv6, const struct kernel_segments *run) {
    if (run->count == 0 || run->count > KERNEL_SEGMENTS) return -EINVAL;
    struct iovec places[KERNEL_SEGMENTS];
    struct run_head head;
    struct msghdr header = run_header(run, ipv6, &head, places);
    ssize_t sent;
    do {
        sent = sendmsg(descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int kernel_send_runs(int descriptor, bool ipv6, const struct kernel_segments *runs, uint32_t count,
                     int *error) {
    struct iovec places[KERNEL_RUNS_SEGMENTS];
    struct run_head heads[KERNEL_RUNS];
    struct mmsghdr messages[KERNEL_RUNS];
    *error = 0;
    if (count > KERNEL_RUNS) count = KERNEL_RUNS;
    uint32_t taken = 0;
    for (uint32_t index = 0; index < count; index++) {
        if (runs[index].count > KERNEL_RUNS_SEGMENTS - taken) {
            *error = EINVAL;
            count = index;
            break;
        }
        messages[index].msg_hdr = run_header(&runs[index], ipv6, &heads[index], places + taken);
        taken += runs[index].count;
    }
    uint32_t sent = 0;
    while (sent < count) {
        // An error is told only if it hit the first run of a call.
        int result = sendmmsg(descriptor, messages + sent, count - sent,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
        if (result < 0 && errno == EINTR) continue;
        if (result < 0) {
            *error = errno;
            break;
        }
        sent += (uint32_t)result;
    }
    return (int)sent;
}
