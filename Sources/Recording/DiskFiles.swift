import CKernel
import Glibc

/// File system calls of recordings; any of them may block on a slow disk.
///
/// Safe: paths and bytes are lent for the length of a call.
enum DiskFiles {
    /// Creates a directory and its parents; returns the errno of a failure.
    static func makeDirectory(_ path: String) -> Int32? {
        var made = ""
        for part in path.split(separator: "/") {
            made += "/\(part)"
            guard unsafe mkdir(made, 0o750) != 0, errno != EEXIST else { continue }
            return errno
        }
        return nil
    }

    /// Creates a new file for writing; returns its descriptor, or the negated errno.
    static func create(_ path: String) -> Int32 {
        let descriptor = unsafe open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o640)
        return descriptor >= 0 ? descriptor : -errno
    }

    /// Writes all bytes at `offset`; returns the errno if not all could be written.
    static func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int) -> Int32? {
        unsafe bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
                let position = off_t(offset + written)
                let count = unsafe pwrite(descriptor, rest.baseAddress, rest.count, position)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : ENOSPC }
                written += count
            }
            return nil
        }
    }

    static func truncate(_ descriptor: Int32, to length: Int) {
        _ = ftruncate(descriptor, off_t(length))
    }

    /// Replaces a file atomically: readers see either the old or the new contents.
    ///
    /// Returns the errno of a failure.
    static func replace(_ path: String, with bytes: [UInt8]) -> Int32? {
        let temporary = path + ".new"
        _ = unsafe unlink(temporary)
        let descriptor = create(temporary)
        guard descriptor >= 0 else { return -descriptor }
        let failure = write(bytes, to: descriptor, at: 0)
        kernel_close(descriptor)
        if let failure {
            _ = unsafe unlink(temporary)
            return failure
        }
        return unsafe rename(temporary, path) == 0 ? nil : errno
    }

    /// Returns the free bytes of the file system that `path` is on, or will be once it is made;
    /// `nil` if unknown.
    static func freeBytes(around path: String) -> Int? {
        var path = path
        while true {
            if let free = freeBytes(at: path) { return free }
            guard path.count > 1, let slash = path.lastIndex(of: "/") else { return nil }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }

    /// Returns the free bytes of the file system that holds `path`; `nil` if unknown.
    static func freeBytes(at path: String) -> Int? {
        unsafe withUnsafeTemporaryAllocation(of: statvfs.self, capacity: 1) { places in
            guard let place = places.baseAddress, unsafe statvfs(path, place) == 0 else {
                return nil
            }
            let found = unsafe place.pointee
            return Int(clamping: found.f_bavail) * Int(clamping: found.f_frsize)
        }
    }
}
