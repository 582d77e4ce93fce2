import Foundation

/// Shared libraries that matter to sfud.
enum DaemonLibraries {
    private static let names = [
        "libssl", "libcrypto", "libsrtp2", "libIPSec_MB", "libavformat", "libavcodec", "libavutil",
        "libswscale", "libnats", "libopus", "libmicrohttpd",
    ]

    /// Reads the contents of a `/proc/PID/maps`.
    static func mapped(_ maps: String) -> [DoctorFacts.Library] {
        var found: [DoctorFacts.Library] = []
        for line in maps.split(separator: "\n") {
            guard let slash = line.firstIndex(of: "/") else { continue }
            var path = line[slash...]
            let isReplaced = path.hasSuffix(" (deleted)")
            if isReplaced { path = path.dropLast(" (deleted)".count) }
            let library = DoctorFacts.Library(name: String(path), isReplaced: isReplaced)
            if isRelevant(path), !found.contains(library) { found.append(library) }
        }
        return found
    }

    /// Reads what `ldd` prints.
    static func linked(_ text: String) -> [DoctorFacts.Library] {
        text.split(separator: "\n").compactMap { line in
            // NAME => PATH (ADDRESS), or NAME => not found.
            let words = line.split(separator: " ")
            guard words.count >= 3, words[0].contains("lib"), words[1] == "=>" else { return nil }
            let name = words[0].filter { $0 != "\t" }
            guard !line.hasSuffix("not found") else {
                return DoctorFacts.Library(name: name, isMissing: true)
            }
            return isRelevant(words[2]) ? DoctorFacts.Library(name: String(words[2])) : nil
        }
    }

    /// Returns the libraries of the sfud beside this program or on the search path; empty if there
    /// is none.
    static func ofInstalled() -> [DoctorFacts.Library] {
        let own = Bundle.main.executableURL?.deletingLastPathComponent().path
        let search = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        let places = [own].compactMap(\.self) + search.split(separator: ":").map(String.init)
        let sfud = places.map { "\($0)/sfud" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        guard let sfud, let text = output(of: "/usr/bin/ldd", [sfud]) else { return [] }
        return linked(text)
    }

    /// Shortens the path to the file's name, and adds the version of its Debian package.
    static func withVersion(_ library: DoctorFacts.Library) -> DoctorFacts.Library {
        var library = library
        let path = library.name
        library.name = String(path.split(separator: "/").last ?? "")
        guard path.hasPrefix("/") else { return library }
        // Packages may name the file below /lib, which is a link to /usr/lib.
        let other = path.hasPrefix("/usr/") ? String(path.dropFirst(4)) : "/usr\(path)"
        for candidate in [path, other] {
            guard let owner = output(of: "/usr/bin/dpkg-query", ["--search", candidate]),
                let end = owner.range(of: ": ")
            else { continue }
            let format = "--showformat=${Version}"
            let package = String(owner[..<end.lowerBound])
            library.version = output(of: "/usr/bin/dpkg-query", ["--show", format, package])
            break
        }
        return library
    }

    private static func isRelevant(_ path: Substring) -> Bool {
        let file = path.split(separator: "/").last ?? ""
        return names.contains { file.hasPrefix("\($0).so") || file.hasPrefix("\($0)-") }
    }

    /// Returns what a program prints; `nil` if it cannot be run or fails.
    private static func output(of program: String, _ arguments: [String]) -> String? {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = (try? pipe.fileHandleForReading.readToEnd()) ?? nil
        process.waitUntilExit()
        guard process.terminationStatus == 0, let data else { return nil }
        return String(decoding: data, as: UTF8.self)
    }
}
