import CKernel
import Glibc
import SFU

/// Sends batches, several datagrams a call where they allow it; never blocks.
struct Outbox {
    private let sockets: [UDPSocket]
    /// Whether the kernel has refused to segment on this socket.
    private var whole: [Bool]
    /// Paths that take no segmented sends (a small MTU on the way), forgotten by overwriting.
    private var wholePaths: [Path?] = Array(repeating: nil, count: Self.wholePathCapacity)
    private var hasWholePaths = false

    /// Datagrams that the kernel had no room for.
    private(set) var queueFull: UInt64 = 0
    /// Datagrams that it refused for other reasons.
    private(set) var errors: UInt64 = 0

    /// Something an operator should know; the log sees to it that it is not told too often.
    enum Trouble: Equatable {
        case segmentationRefused(socket: Int, number: Int32)
        case refused(number: Int32)
    }
    private(set) var trouble: Trouble?

    init(_ sockets: [UDPSocket]) {
        self.sockets = sockets
        whole = sockets.map { _ in false }
    }

    mutating func takeTrouble() -> Trouble? {
        defer { trouble = nil }
        return trouble
    }

    /// Sends all of a batch and empties it.
    mutating func send(_ batch: inout Batch, from locals: borrowing LocalAddresses) {
        var index = 0
        while index < batch.count {
            let path = batch.path(at: index)
            let local = locals[path.local]
            let run = batch.run(from: index, limit: limit(path, socket: local.socket))
            let result = Self.send(run, of: batch, from: sockets[local.socket], local)
            index = run.end
            guard result < 0 else { continue }
            if run.count > 1, Self.refusesSegments(-result) {
                trouble = .segmentationRefused(socket: local.socket, number: -result)
                remember(path, socket: local.socket, number: -result)
                index = run.start
            } else {
                count(run, number: -result)
            }
        }
        batch.removeAll()
    }

    private func limit(_ path: Path, socket: Int) -> Int {
        if whole[socket] { return 1 }
        if hasWholePaths, wholePaths[Self.place(of: path)] == path { return 1 }
        return SendRun.maximumCount
    }

    private mutating func remember(_ path: Path, socket: Int, number: Int32) {
        if number == EINVAL || number == EMSGSIZE {
            wholePaths[Self.place(of: path)] = path
            hasWholePaths = true
        } else {
            whole[socket] = true
        }
    }

    private mutating func count(_ run: SendRun, number: Int32) {
        if number == EAGAIN || number == ENOBUFS {
            queueFull += UInt64(run.count)
        } else {
            errors += UInt64(run.count)
            trouble = .refused(number: number)
        }
    }

    private static func send(
        _ run: SendRun,
        of batch: borrowing Batch,
        from socket: UDPSocket,
        _ local: LocalAddresses.Entry
    ) -> Int32 {
        let source = local.source ?? Address(high: 0, low: 0, port: 0)
        // The places of a batch lie `stride` apart, and the run ends inside it.
        return unsafe batch[run.start].withUnsafeBufferPointer { first in
            var request = unsafe kernel_run(
                remote: batch.path(at: run.start).remote.kernel,
                local: source.kernel,
                interface: local.interface,
                first: first.baseAddress,
                stride: UInt32(Batch.stride),
                count: UInt32(run.count),
                length: UInt32(run.length),
                last_length: UInt32(run.lastLength)
            )
            return unsafe kernel_send_run(socket.descriptor, socket.address.isIPv6, &request)
        }
    }

    /// EIO: no checksum offload; EINVAL, EMSGSIZE: a segment is larger than the path's MTU.
    private static func refusesSegments(_ number: Int32) -> Bool {
        [EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT].contains(number)
    }

    private static func place(of path: Path) -> Int {
        let mixed =
            (path.remote.low ^ path.remote.high ^ UInt64(path.remote.port) << 17)
            &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: mixed >> 58)
    }

    private static let wholePathCapacity = 64
}
