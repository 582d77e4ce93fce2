import Glibc
package import SFU

/// Sends batches, several datagrams a call where they allow it; never blocks.
package struct Outbox {
    private let sockets: [UDPSocket]
    /// Whether the kernel has refused to segment on this socket.
    private var whole: [Bool]
    /// Paths that take no segmented sends (a small MTU on the way), forgotten by overwriting.
    private var wholePaths: [Path?] = Array(repeating: nil, count: Self.wholePathCapacity)
    private var hasWholePaths = false

    /// Datagrams that the kernel had no room for.
    package private(set) var queueFull: UInt64 = 0
    /// Datagrams that it refused for other reasons.
    package private(set) var errors: UInt64 = 0

    /// Something an operator should know; the log sees to it that it is not told too often.
    package enum Trouble: Equatable {
        case segmentationRefused(socket: Int, number: Int32)
        case refused(number: Int32)
    }
    package private(set) var trouble: Trouble?

    package init(_ sockets: [UDPSocket]) {
        self.sockets = sockets
        whole = sockets.map { _ in false }
    }

    package mutating func takeTrouble() -> Trouble? {
        defer { trouble = nil }
        return trouble
    }

    /// Sends all of a batch and empties it.
    package mutating func send(_ batch: inout Batch, from locals: borrowing LocalAddresses) {
        var index = 0
        while index < batch.count {
            let path = batch.path(at: index)
            let local = locals[path.local]
            let run = batch.run(from: index, limit: limit(path, socket: local.socket))
            let number = sockets[local.socket].send(
                run,
                of: batch,
                source: local.source,
                interface: local.interface
            )
            index = run.end
            guard number != 0 else { continue }
            if run.count > 1, Self.refusesSegments(number) {
                trouble = .segmentationRefused(socket: local.socket, number: number)
                remember(path, socket: local.socket, number: number)
                index = run.start
            } else {
                count(run, number: number)
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
