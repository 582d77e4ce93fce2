import Foundation

/// Gives files other names.
enum Rename {
    /// Puts `from` in the place of `to`, in one step: whoever opens `to` finds the old or the new.
    ///
    /// The system's own call, for Foundation has none that does so on Linux. Both names are
    /// strings that end in a zero for as long as the call lasts.
    ///
    /// - Throws: `ComposeError`.
    static func move(_ from: URL, to: URL) throws(ComposeError) {
        guard unsafe rename(from.path, to.path) == 0 else {
            throw ComposeError("\(to.path) cannot be written")
        }
    }
}
