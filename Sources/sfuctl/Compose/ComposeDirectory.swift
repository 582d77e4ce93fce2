import Foundation

/// Working directory that keeps the results of finished steps until the file is complete.
///
/// It lies in the recording's directory and is locked by one process at a time.
final class ComposeDirectory {
    let url: URL
    private let lock: FileHandle

    /// Creates or opens the directory for these options, and locks it.
    ///
    /// - Throws: `ComposeError`.
    init(for options: ComposeOptions) throws(ComposeError) {
        var fingerprint = Fingerprint()
        for part in [
            options.output, options.layout.rawValue, "\(options.size)", options.font ?? "",
        ] { fingerprint.add(part) }
        let recording = URL(filePath: options.directory, directoryHint: .isDirectory)
        url = recording.appending(path: ".compose-\(fingerprint.text)")
        let file = url.appending(path: "lock")
        do {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            if !FileManager.default.fileExists(atPath: file.path) {
                try Data().write(to: file)
            }
            lock = try FileHandle(forUpdating: file)
        } catch {
            throw ComposeError("\(url.path) cannot be written")
        }
        guard flock(lock.fileDescriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw ComposeError("\(options.output) is being composed already")
        }
    }

    func contains(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: url.appending(path: name).path)
    }

    /// Removes files that no step of the plan creates, from an older plan or an interrupted step.
    func keepOnly(_ names: Set<String>) {
        let kept = names.union(["lock"])
        for name in (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
        where !kept.contains(name) { remove(name) }
    }

    /// Removes a file if it exists.
    func remove(_ name: String) {
        try? FileManager.default.removeItem(at: url.appending(path: name))
    }

    /// Writes a text file atomically.
    ///
    /// - Throws: `ComposeError`.
    func write(_ text: String, to name: String) throws(ComposeError) {
        do {
            try Data(text.utf8).write(to: url.appending(path: name), options: .atomic)
        } catch {
            throw ComposeError("\(url.appending(path: name).path) cannot be written")
        }
    }

    /// Removes the directory and its contents.
    func removeAll() { try? FileManager.default.removeItem(at: url) }
}
