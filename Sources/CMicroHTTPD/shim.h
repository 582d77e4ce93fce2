#pragma once
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/// Starts a server on a listening socket, without threads of its own; returns NULL on failure. It
/// exists because Swift cannot call `MHD_start_daemon`, which has variadic arguments. Both
/// callbacks receive `context`. The library closes no connection for being idle.
static inline struct MHD_Daemon *http_start(int listener, unsigned connections,
                                            MHD_AccessHandlerCallback handler,
                                            MHD_NotifyConnectionCallback notice, void *context) {
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler,
                            context, MHD_OPTION_LISTEN_SOCKET, listener,
                            MHD_OPTION_CONNECTION_LIMIT, connections,
                            MHD_OPTION_NOTIFY_CONNECTION, notice, context, MHD_OPTION_END);
}

/// Returns the connection's socket, or -1 if there is none.
static inline int http_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/// Source of a connection: an IPv4 address in `low`, or the /64 of an IPv6 address in `high`.
struct http_source {
    uint64_t high;
    uint64_t low;
};

/// Returns the source of an IPv6 address, given its halves as in memory. An embedded IPv4 address
/// (::ffff:a.b.c.d) yields that IPv4 address.
static inline struct http_source http_ipv6_source(uint64_t first, uint64_t second) {
    struct http_source source = {first, 0};
    const unsigned char *bytes = (const unsigned char *)&second;
    static const unsigned char mark[4] = {0, 0, 0xff, 0xff};
    if (first == 0 && memcmp(bytes, mark, sizeof mark) == 0) {
        uint32_t ipv4;
        memcpy(&ipv4, bytes + 4, sizeof ipv4);
        source.low = ipv4;
    }
    return source;
}

/// Returns the source of a connection; zeros if unknown.
static inline struct http_source http_connection_source(struct MHD_Connection *connection) {
    struct http_source source = {0, 0};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info == NULL || info->client_addr == NULL) return source;
    if (info->client_addr->sa_family == AF_INET)
        source.low = ((const struct sockaddr_in *)info->client_addr)->sin_addr.s_addr;
    if (info->client_addr->sa_family == AF_INET6) {
        uint64_t halves[2];
        memcpy(halves, &((const struct sockaddr_in6 *)info->client_addr)->sin6_addr,
               sizeof halves);
        return http_ipv6_source(halves[0], halves[1]);
    }
    return source;
}

/// Shuts down both directions; the library notices and closes the connection.
static inline void http_shutdown(int descriptor) { shutdown(descriptor, SHUT_RDWR); }

/// Returns the epoll descriptor that becomes readable when `MHD_run` has work.
static inline int http_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}

/// Returns the milliseconds until `MHD_run` must be called, or -1 if there is no deadline.
static inline long long http_timeout(struct MHD_Daemon *daemon) {
    unsigned MHD_LONG_LONG milliseconds = 0;
    return MHD_get_timeout(daemon, &milliseconds) == MHD_YES ? (long long)milliseconds : -1;
}
