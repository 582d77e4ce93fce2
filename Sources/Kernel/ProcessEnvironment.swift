import Glibc

/// Environment variables of this process.
package enum ProcessEnvironment {
    /// Returns all entries, each `NAME=VALUE` without a closing zero.
    ///
    /// They are bytes, because a value may be no UTF-8.
    package static func entries() -> [[UInt8]] {
        var entries: [[UInt8]] = []
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            entries.append(unsafe Array(String(cString: entry).utf8))
            unsafe next += 1
        }
        return entries
    }

    /// Returns the value of a variable.
    package static subscript(name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Removes variables; call it only while there is one thread.
    package static func unset(_ names: [String]) {
        for name in names { unsafe unsetenv(name) }
    }

    /// Returns the entries whose names are none of `names`.
    package static func entries(without names: [String]) -> [[UInt8]] {
        let prefixes = names.map { Array("\($0)=".utf8) }
        return entries().filter { entry in !prefixes.contains { entry.starts(with: $0) } }
    }
}
