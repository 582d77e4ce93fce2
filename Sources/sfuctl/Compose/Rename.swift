import Foundation

/// Atomic renaming of files.
enum Rename {
    /// Replaces `to` with `from` atomically: opening `to` gives the old or the new file.
    ///
    /// Uses the system call because Foundation has no such operation on Linux. Both names are
    /// null-terminated strings for the duration of the call.
    ///
    /// - Throws: `ComposeError`.
    static func move(_ from: URL, to: URL) throws(ComposeError) {
        guard unsafe rename(from.path, to.path) == 0 else {
            throw ComposeError("\(to.path) cannot be written")
        }
    }
}
