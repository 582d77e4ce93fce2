import CKernel
import CMicroHTTPD
import Kernel
import RTP
import Sockets
import WorkerInterface

/// HTTP server for `/metrics`, `/healthz` and `/readyz`, by libmicrohttpd on the control thread.
///
/// Safe: the library calls back only inside `run`, on the thread that called it, and this object
/// outlives the library's daemon, which it stops itself.
@safe
final class HTTPServer {
    /// Cached page with its expiry.
    private struct Page {
        var bytes: [UInt8]
        var freshUntil: Instant
    }

    private var daemon: OpaquePointer?
    /// Bound address; if port 0 was asked for, the port is the one that the kernel chose.
    let address: Address
    private var metrics: Page?
    /// Suspended connections that asked for metrics, by descriptor.
    private var waiting: [Int32: OpaquePointer] = unsafe [:]
    private var connections = HTTPConnections()
    private var isClosing = false
    private var now = Instant(nanoseconds: 0)
    /// Whether `/healthz` answers 200; `false` (503) while the daemon shuts down.
    var isHealthy = true
    /// Whether `/readyz` answers 200; `false` (503) while the daemon starts, drains or shuts down.
    var isReady = false

    /// Listens at `address`.
    convenience init(_ address: Address) throws(StartError) {
        let listener: TCPListener
        do throws(SystemError) {
            listener = try TCPListener.open(address)
        } catch {
            throw .system("http", "\(error)")
        }
        try self.init(listener)
    }

    /// Serves the connections of `listener`, which it closes.
    init(_ listener: TCPListener) throws(StartError) {
        address = listener.address
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe daemon = http_start(
            listener.descriptor,
            Self.connectionLimit,
            Self.handler,
            Self.notice,
            context
        )
        guard unsafe daemon != nil else {
            listener.close()
            throw .system("http", "\(address.endpointText): the HTTP library does not start")
        }
    }

    deinit {
        guard let daemon = unsafe daemon else { return }
        // The library aborts the process if it is stopped while a connection is suspended.
        isClosing = true
        resumeAll()
        _ = unsafe MHD_run(daemon)
        unsafe MHD_stop_daemon(daemon)
    }

    /// Descriptor that is readable when `run` has something to do.
    var descriptor: Int32 { unsafe http_descriptor(daemon) }

    /// Returns the latest time of the next call of `run`; `nil` if there is none.
    func deadline(at now: Instant) -> Instant? {
        let left = unsafe http_timeout(daemon)
        let library = left < 0 ? nil : now.advanced(milliseconds: left)
        return [library, connections.deadline].compactMap(\.self).min()
    }

    /// Whether a suspended request waits for fresh metrics.
    var wantsMetrics: Bool { unsafe !waiting.isEmpty }

    /// Serves ready connections, and ends those that take too long.
    func run(at now: Instant) {
        self.now = now
        connections.expire(at: now)
        shutDownEvicted()
        _ = unsafe MHD_run(daemon)
        guard !connections.evicted.isEmpty else { return }
        shutDownEvicted()
        _ = unsafe MHD_run(daemon)
    }

    /// Shuts down evicted connections; the library closes them when it runs next.
    private func shutDownEvicted() {
        for descriptor in connections.takeEvicted() {
            http_shutdown(descriptor)
            // The library ignores suspended connections, so resume it.
            guard let connection = unsafe waiting.removeValue(forKey: descriptor) else { continue }
            unsafe MHD_resume_connection(connection)
        }
    }

    /// Answers waiting requests with new metrics, and caches these for a second.
    func publish(metrics bytes: [UInt8], at now: Instant) {
        metrics = Page(
            bytes: bytes,
            freshUntil: now.advanced(milliseconds: Self.freshMilliseconds)
        )
        resumeAll()
        run(at: now)
    }

    private func resumeAll() {
        while let (_, connection) = unsafe waiting.popFirst() {
            unsafe MHD_resume_connection(connection)
        }
    }

    private func answer(
        _ connection: OpaquePointer,
        _ method: String,
        _ path: String
    ) -> MHD_Result {
        guard method == "GET" || method == "HEAD" else {
            return unsafe respond(connection, 405, Array("only GET\n".utf8))
        }
        switch path {
        case "/healthz":
            let body = isHealthy ? "ok\n" : "shutting down\n"
            return unsafe respond(connection, isHealthy ? 200 : 503, Array(body.utf8))
        case "/readyz":
            let body = isReady ? "ready\n" : "takes no new rooms\n"
            return unsafe respond(connection, isReady ? 200 : 503, Array(body.utf8))
        case "/metrics":
            if let metrics, now < metrics.freshUntil {
                return unsafe respond(connection, 200, metrics.bytes)
            }
            let descriptor = unsafe http_connection_descriptor(connection)
            guard !isClosing, connections.contains(descriptor) else {
                return unsafe respond(connection, 503, Array("shutting down\n".utf8))
            }
            unsafe waiting[descriptor] = unsafe connection
            unsafe MHD_suspend_connection(connection)
            return .YES
        default:
            return unsafe respond(connection, 404, Array("not found\n".utf8))
        }
    }

    private func respond(
        _ connection: OpaquePointer,
        _ status: UInt32,
        _ body: [UInt8]
    ) -> MHD_Result {
        var body = body
        let count = body.count
        let response = unsafe body.withUnsafeMutableBytes { bytes in
            unsafe MHD_create_response_from_buffer(
                count,
                bytes.baseAddress,
                .RESPMEM_MUST_COPY
            )
        }
        guard let response = unsafe response else { return .NO }
        defer { unsafe MHD_destroy_response(response) }
        _ = unsafe MHD_add_response_header(
            response,
            "Content-Type",
            "text/plain; version=0.0.4; charset=utf-8"
        )
        _ = unsafe MHD_add_response_header(response, "Connection", "close")
        return unsafe MHD_queue_response(connection, status, response)
    }

    /// Request callback of the library; the first call for a request comes before its headers are
    /// read.
    private static let handler: MHD_AccessHandlerCallback = {
        context,
        connection,
        path,
        method,
        _,
        _,
        uploadSize,
        state in
        guard let context = unsafe context, let connection = unsafe connection,
            let path = unsafe path, let method = unsafe method,
            let uploadSize = unsafe uploadSize, let state = unsafe state
        else { return .NO }
        if unsafe state.pointee == nil {
            unsafe state.pointee = context
            return .YES
        }
        guard unsafe uploadSize.pointee == 0 else {
            unsafe uploadSize.pointee = 0
            return .YES
        }
        let server = unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
        return unsafe server.answer(connection, String(cString: method), String(cString: path))
    }

    /// Connection callback of the library: called at the beginning and the end.
    private static let notice: MHD_NotifyConnectionCallback = { context, connection, _, what in
        guard let context = unsafe context, let connection = unsafe connection else { return }
        let server = unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
        let descriptor = unsafe http_connection_descriptor(connection)
        switch what {
        case .CONNECTION_NOTIFY_STARTED:
            let source = unsafe http_connection_source(connection)
            server.connections.open(
                descriptor,
                from: HTTPConnections.Source(high: source.high, low: source.low),
                at: server.now
            )
        default: server.connections.close(descriptor)
        }
    }

    /// Connections that the library accepts.
    ///
    /// More than `HTTPConnections.limit`, as connections that were shut down close a little later.
    private static let connectionLimit: UInt32 = 64
    private static let freshMilliseconds: Int64 = 1_000
}
