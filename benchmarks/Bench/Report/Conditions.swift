import Foundation

/// Conditions of a run that matter for comparisons.
enum Conditions {
    /// Returns the commit of the surrounding repository, if any.
    static func commit() -> String? { output("git", ["describe", "--always", "--dirty"]) }

    /// Returns name and count of the processors.
    static func processor() -> String {
        let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let name = text.split(separator: "\n").first { $0.hasPrefix("model name") }
        let value = name?.split(separator: ":").last.map { $0.drop { $0 == " " } }
        return "\(ProcessInfo.processInfo.processorCount) of \(value.map(String.init) ?? "?")"
    }

    static func kernel() -> String { output("uname", ["-sr"]) ?? "?" }

    /// Returns the system's load averages of one, five and fifteen minutes.
    static func load() -> String {
        let text = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? ""
        return text.split(separator: " ").prefix(3).joined(separator: " ")
    }

    /// Returns the size of the machine's memory.
    static func memory() -> String {
        String(format: "%.0f GB", Double(ProcessInfo.processInfo.physicalMemory) / 1e9)
    }

    private static func output(_ program: String, _ arguments: [String]) -> String? {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { return nil }
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let text = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first
        return text.map(String.init)
    }
}
