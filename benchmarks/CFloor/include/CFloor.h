/// Lower bound for the cost of forwarding: the kernel's send calls and nothing else.
#pragma once

#include <stdint.h>

/// Precomputed destinations of datagrams.
struct floor_route;

/// Creates a route to `count` IPv4 addresses and ports in host order; NULL without memory.
struct floor_route *floor_route_create(const uint32_t *addresses, const uint16_t *ports,
                                       int count);
void floor_route_destroy(struct floor_route *route);

/// Sends a datagram to each destination with one `sendto` each; returns how many succeeded.
int64_t floor_send_each(int descriptor, const struct floor_route *route, const uint8_t *bytes,
                        uint32_t length);

/// Sends `count` datagrams of `length` bytes, the last of `last_length`, to each destination with
/// one `sendmsg` each (UDP_SEGMENT); returns how many datagrams were sent.
int64_t floor_send_run(int descriptor, const struct floor_route *route,
                       const uint8_t *const *datagrams, int count, uint32_t length,
                       uint32_t last_length);
