#define _GNU_SOURCE 1

#include "CFloor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { most_segments = 64 };

struct floor_route {
    int count;
    struct sockaddr_in destinations[];
};

struct floor_route *floor_route_create(const uint32_t *addresses, const uint16_t *ports,
                                       int count) {
    struct floor_route *route =
        malloc(sizeof *route + (size_t)count * sizeof route->destinations[0]);
    if (route == NULL) return NULL;
    route->count = count;
    for (int index = 0; index < count; index++) {
        route->destinations[index] =
            (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons(ports[index]),
                                 .sin_addr.s_addr = htonl(addresses[index])};
    }
    return route;
}

void floor_route_destroy(struct floor_route *route) { free(route); }

int64_t floor_send_each(int descriptor, const struct floor_route *route, const uint8_t *bytes,
                        uint32_t length) {
    int64_t sent = 0;
    for (int index = 0; index < route->count; index++) {
        const struct sockaddr *destination =
            (const struct sockaddr *)&route->destinations[index];
        sent += sendto(descriptor, bytes, length, MSG_DONTWAIT, destination,
                       sizeof(struct sockaddr_in))
            == (ssize_t)length;
    }
    return sent;
}

int64_t floor_send_run(int descriptor, const struct floor_route *route,
                       const uint8_t *const *datagrams, int count, uint32_t length,
                       uint32_t last_length) {
    if (count == 1) return floor_send_each(descriptor, route, datagrams[0], last_length);
    if (count < 1 || count > most_segments) return 0;
    struct iovec places[most_segments];
    for (int index = 0; index < count; index++) {
        places[index] = (struct iovec){.iov_base = (void *)(uintptr_t)datagrams[index],
                                       .iov_len = index + 1 == count ? last_length : length};
    }
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct msghdr header = {.msg_namelen = sizeof(struct sockaddr_in),
                            .msg_iov = places,
                            .msg_iovlen = (size_t)count,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    struct cmsghdr *item = CMSG_FIRSTHDR(&header);
    uint16_t segment = (uint16_t)length;
    item->cmsg_level = IPPROTO_UDP;
    item->cmsg_type = UDP_SEGMENT;
    item->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(item), &segment, sizeof segment);
    int64_t sent = 0;
    for (int index = 0; index < route->count; index++) {
        header.msg_name = (void *)(uintptr_t)&route->destinations[index];
        if (sendmsg(descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) sent += count;
    }
    return sent;
}
