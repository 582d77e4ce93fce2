import Glibc
import WorkerInterface

/// Record of sends without GSO: for a whole socket, or for single paths from it.
struct GSOLimits {
    private var isWhole = false
    /// Paths with a small MTU; an entry is forgotten when it is overwritten.
    private var paths: [Path?] = []

    /// Returns the most datagrams that one call to `path` may have.
    func limit(_ path: Path) -> Int {
        if isWhole { return 1 }
        if !paths.isEmpty, paths[Self.place(of: path)] == path { return 1 }
        return SendRun.maximumCount
    }

    /// Learns from the errno of a refused run.
    ///
    /// Returns whether the refusal concerns `path` only, or `nil` if the errno is not about GSO.
    mutating func learn(_ number: Int32, from path: Path) -> Bool? {
        switch number {
        case EINVAL, EMSGSIZE:  // A segment is larger than the path MTU.
            if paths.isEmpty { paths = Array(repeating: nil, count: Self.capacity) }
            paths[Self.place(of: path)] = path
            return true
        case EIO, EOPNOTSUPP, ENOPROTOOPT:  // No checksum offload, or no such option.
            isWhole = true
            return false
        default:
            return nil
        }
    }

    private static func place(of path: Path) -> Int {
        let mixed =
            (path.remote.low ^ path.remote.high ^ UInt64(path.remote.port) << 17)
            &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: mixed >> 58)
    }

    private static let capacity = 64
}
