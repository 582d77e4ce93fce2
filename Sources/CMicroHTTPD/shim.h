#pragma once
#include <microhttpd.h>

/// Serves a listening socket without threads of its own; NULL where it cannot.
/// `MHD_start_daemon` takes its options as variadic arguments, which Swift does not call.
static inline struct MHD_Daemon *http_start(int listener, unsigned connections,
                                            unsigned timeout_seconds,
                                            MHD_AccessHandlerCallback handler, void *context) {
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler,
                            context, MHD_OPTION_LISTEN_SOCKET, listener,
                            MHD_OPTION_CONNECTION_LIMIT, connections,
                            MHD_OPTION_CONNECTION_TIMEOUT, timeout_seconds, MHD_OPTION_END);
}

/// The epoll descriptor that tells when `MHD_run` has something to do.
static inline int http_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}

/// Milliseconds until `MHD_run` must be called at the latest; -1 where there is no such time.
static inline long long http_timeout(struct MHD_Daemon *daemon) {
    unsigned MHD_LONG_LONG milliseconds = 0;
    return MHD_get_timeout(daemon, &milliseconds) == MHD_YES ? (long long)milliseconds : -1;
}
