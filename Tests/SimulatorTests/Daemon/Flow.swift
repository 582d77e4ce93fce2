import RTP

@testable import WorkerInterface

extension SimulatedDaemon {
    /// A flow from one client to another.
    struct Flow: Hashable {
        var publisher: Int
        var viewer: Int
        var kind: MediaKind
    }

    struct Count: Equatable {
        /// Copies that the core wrote, retransmissions excluded.
        var written: UInt64 = 0
        /// Datagrams that left a socket, retransmissions included.
        var left: UInt64 = 0
    }
}
