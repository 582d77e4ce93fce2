internal import CKernel

/// Open descriptor with the name under which it is handed to the next process.
package struct NamedDescriptor: Equatable, Sendable {
    package var name: String
    package var descriptor: Int32

    package init(name: String, descriptor: Int32) {
        self.name = name
        self.descriptor = descriptor
    }
}

/// Program that gets open descriptors, by the protocol of sd_listen_fds(3).
package struct HandoverProgram {
    /// The path of the program, and its arguments.
    package var arguments: [String]
    /// Entries `NAME=VALUE`; those of the protocol are added.
    package var environment: [[UInt8]]
    package var descriptors: [NamedDescriptor]

    /// Most descriptors that are kept, and handed over, at a time.
    ///
    /// While a program is started there are two of each, and many systems permit 1,024.
    package static let descriptorLimit = 384
    /// Variables that tell a program about its descriptors.
    package static let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]

    package init(
        arguments: [String],
        environment: [[UInt8]],
        descriptors: [NamedDescriptor]
    ) {
        self.arguments = arguments
        self.environment = environment
        self.descriptors = descriptors
    }

    /// Starts the program as a child that gets `deathSignal` when the calling thread ends; returns
    /// its process id.
    package func start(deathSignal: Int32) throws(SystemError) -> Int32 {
        let command = Command(self)
        let started = unsafe kernel_start_process(
            command.words,
            Int64(command.words.count),
            command.variables,
            Int64(command.variables.count),
            command.numbers,
            Int64(command.numbers.count),
            deathSignal
        )
        return try SystemError.check(started, arguments.first ?? "")
    }

    /// Replaces this process by the program; returns only if that fails.
    ///
    /// After a failure all descriptors are as before. Other threads must not use descriptors
    /// meanwhile. The program is read from `file`, if that is not where its first argument says.
    package func replaceProcess(from file: String? = nil) -> SystemError {
        let command = Command(self)
        let path = file ?? arguments.first ?? ""
        let failure = unsafe kernel_replace_process(
            path,
            command.words,
            Int64(command.words.count),
            command.variables,
            Int64(command.variables.count),
            command.numbers,
            Int64(command.numbers.count)
        )
        return SystemError(operation: path, number: -failure)
    }

    /// Form in which the system calls take a program.
    private struct Command {
        var words: [UInt8]
        var variables: [UInt8]
        var numbers: [Int32]

        init(_ program: HandoverProgram) {
            words = Self.terminated(program.arguments.map { Array($0.utf8) })
            variables = Self.terminated(program.entries)
            numbers = program.descriptors.map(\.descriptor)
        }

        private static func terminated(_ texts: [[UInt8]]) -> [UInt8] {
            texts.flatMap { $0 + [0] }
        }
    }

    private var entries: [[UInt8]] {
        guard !descriptors.isEmpty else { return environment }
        let names = descriptors.map(\.name).joined(separator: ":")
        let added = ["LISTEN_PID=", "LISTEN_FDS=\(descriptors.count)", "LISTEN_FDNAMES=\(names)"]
        return environment + added.map { Array($0.utf8) }
    }
}

extension NamedDescriptor {
    /// Whether a service manager accepts a name (sd_pid_notify_with_fds(3), `FDNAME`).
    package static func isValid(name: String) -> Bool {
        (1...255).contains(name.utf8.count)
            && name.utf8.allSatisfy { (0x20...0x7e).contains($0) && $0 != UInt8(ascii: ":") }
    }
}
