import Glibc
import WorkerInterface

/// What takes no segmented sends: a whole socket, or single ways from it.
struct Unsegmented {
    private var isWhole = false
    /// Ways with a small MTU, forgotten by overwriting.
    private var paths: [Path?] = []

    /// Datagrams that one call may have.
    func limit(_ path: Path) -> Int {
        if isWhole { return 1 }
        if !paths.isEmpty, paths[Self.place(of: path)] == path { return 1 }
        return SendRun.maximumCount
    }

    /// Remembers what a refused run says; returns whether that is about `path` alone, and `nil`
    /// where the errno says nothing about segments.
    mutating func learn(_ number: Int32, from path: Path) -> Bool? {
        switch number {
        case EINVAL, EMSGSIZE:  // A segment is larger than the way's MTU.
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
