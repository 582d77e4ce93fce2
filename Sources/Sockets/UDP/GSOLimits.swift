import Glibc
import WorkerInterface

/// Record of sends without GSO: for a whole socket, or for single paths from it.
struct GSOLimits {
    private var isWhole = false
    /// Paths with a small MTU; an entry is forgotten when it is overwritten.
    private var paths: [Path?] = []
    /// Paths that were refused for their route's device or policy.
    private var refusedRoutes = 0

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
            note(path)
            return true
        case EIO:  // The route's device has no checksum offload, or the route is a tunnel.
            note(path)
            refusedRoutes += 1
            isWhole = refusedRoutes >= Self.refusedRoutesLimit
            return !isWhole
        case EOPNOTSUPP, ENOPROTOOPT:  // No such option.
            isWhole = true
            return false
        default:
            return nil
        }
    }

    private mutating func note(_ path: Path) {
        if paths.isEmpty { paths = Array(repeating: nil, count: Self.capacity) }
        paths[Self.place(of: path)] = path
    }

    private static func place(of path: Path) -> Int {
        let mixed =
            (path.remote.low ^ path.remote.high ^ UInt64(path.remote.port) << 17)
            &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: mixed >> 58)
    }

    private static let capacity = 64
    /// Refused routes from which on all of the socket's are taken to be so.
    static let refusedRoutesLimit = 16
}
