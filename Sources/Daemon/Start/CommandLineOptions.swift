import CKernel
import Foundation
import Kernel

/// Action that the command line requests.
package enum Invocation: Equatable {
    case run(Configuration)
    case checkConfiguration(Configuration)
    case help
    case version
}

/// Parser of the command line and of the configuration file that it names.
package struct CommandLineOptions {
    private var values: [ConfigurationKey: [String]] = [:]
    private var file: String?
    private var checkOnly = false
    private var early: Invocation?

    /// Parses the arguments, which exclude the program's name, and returns the requested action.
    package static func invocation(
        _ arguments: [String],
        defaults: Configuration,
        read: (String) throws(ConfigurationError) -> [UInt8] = readFile
    ) throws(ConfigurationError) -> Invocation {
        var options = Self()
        try options.parse(arguments)
        if let early = options.early { return early }
        var configuration = defaults
        if let file = options.file { try configuration.apply(file: read(file)) }
        for key in ConfigurationKey.allCases {
            if let values = options.values[key] { try configuration.set(key, to: values) }
        }
        try configuration.validate()
        return options.checkOnly ? .checkConfiguration(configuration) : .run(configuration)
    }

    private mutating func parse(_ arguments: [String]) throws(ConfigurationError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": early = early ?? .help
            case "--version": early = early ?? .version
            case "--check-config": checkOnly = true
            case "--keeper":
                throw ConfigurationError(key: argument, reason: "must be the first argument")
            default: try take(argument, &rest)
            }
        }
    }

    /// Parses one flag, given as `--flag VALUE` or `--flag=VALUE`.
    private mutating func take(
        _ argument: String,
        _ rest: inout ArraySlice<String>
    ) throws(ConfigurationError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0].drop { $0 == "-" })
        guard argument.hasPrefix("--"), name == "config" || ConfigurationKey(rawValue: name) != nil
        else {
            throw ConfigurationError(key: argument, reason: "unknown flag; see --help")
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
            throw ConfigurationError(key: name, reason: "needs a value")
        }
        if let key = ConfigurationKey(rawValue: name) {
            values[key, default: []].append(value)
        } else if file == nil {
            file = value
        } else {
            throw ConfigurationError(key: name, reason: "is given more than once")
        }
    }

    private static func readFile(_ path: String) throws(ConfigurationError) -> [UInt8] {
        func refuse(_ number: Int32) -> ConfigurationError {
            let reason = "cannot read \"\(path)\": \(SystemError.text(number))"
            return ConfigurationError(key: "config", reason: reason)
        }
        let descriptor = unsafe kernel_open_file(path)
        guard descriptor >= 0 else { throw refuse(-descriptor) }
        defer { kernel_close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while text.count < maximumFileBytes {
            var places = buffer.mutableSpan
            let count = kernel_read(descriptor, &places)
            guard count >= 0 else { throw refuse(Int32(truncatingIfNeeded: -count)) }
            guard count > 0 else { return text }
            text += buffer[..<Int(count)]
        }
        throw refuse(EFBIG)
    }

    private static let maximumFileBytes = 1 << 20

    /// Returns the text of `--help`.
    static func help(_ defaults: Configuration) -> String {
        var lines = [
            "Usage: sfud [--keeper] [FLAG]...", "",
            "Forwards WebRTC media; driven over a Unix socket.", "",
        ]
        func add(_ flag: String, _ summary: String, _ value: String?) {
            let padded = flag.padding(toLength: 28, withPad: " ", startingAt: 0)
            lines.append("  \(padded)\(summary)")
            if let value { lines.append(String(repeating: " ", count: 30) + "(default: \(value))") }
        }
        add("--config FILE", "read settings from this JSON5 file; flags win over it", "none")
        for key in ConfigurationKey.allCases {
            add("--\(key.rawValue) \(key.placeholder)", key.summary, key.text(of: defaults))
        }
        add("--keeper", "as the first flag: stay as a parent that starts sfud again", nil)
        add("--check-config", "check the settings and exit", nil)
        add("--version", "print the version and exit", nil)
        add("--help", "print this and exit", nil)
        lines += [
            "", "Limits are keys of the file's `limits`; docs/limits.md lists them.",
            "Exit status: 0 after SIGTERM or SIGINT, 71 when the system refuses a resource,",
            "78 for a setting that cannot be.", "",
        ]
        return lines.joined(separator: "\n")
    }
}
