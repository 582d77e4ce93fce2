import RTP
import WorkerInterface

// Comparisons of the packet path. Those of another module are calls, these are not: a call for each
// forwarded copy is counted by `make gate`.

extension MediaKind {
    var isAudio: Bool { if case .audio = self { true } else { false } }
    var isVideo: Bool { if case .video = self { true } else { false } }
}

extension Path {
    /// Whether two paths are the same.
    func isSame(as other: Path) -> Bool {
        remote.low == other.remote.low && remote.high == other.remote.high
            && remote.port == other.remote.port && local == other.local
    }
}
