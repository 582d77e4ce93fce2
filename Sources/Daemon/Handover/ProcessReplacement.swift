import CKernel
import Glibc
import Kernel
import RTP

/// Reason for which the program stays the one that it is.
struct UpgradeRefusal: Error, Equatable {
    var detail: String
}

/// Replacement of this process's program by another version, with the same process id.
///
/// The descriptors for the next life are handed over as a service manager would, so the new program
/// starts as after a crash.
struct ProcessReplacement {
    /// Arguments of the next program, without its name.
    private let arguments: [String]
    /// First word of this process's command line.
    private let command: String
    /// Descriptors from 3 on that can be handed over; their numbers are free for that.
    private let reserved: Int

    init(arguments: [String], command: String, reserved: Int) {
        self.arguments = arguments
        self.command = command
        self.reserved = reserved
    }

    /// Path of the program that an upgrade without a path uses: the one that was started, which may
    /// have been replaced by another version.
    func standardBinary() throws(UpgradeRefusal) -> String {
        guard let path = ProgramPath.own(command) else {
            throw UpgradeRefusal(detail: "the program that was started is not found")
        }
        return path
    }

    /// Executes the program that `check` has found good in place of this one; returns why that
    /// failed, with the descriptors as before.
    func replaceProcess(
        by check: BinaryCheck,
        descriptors: [NamedDescriptor]
    ) -> UpgradeRefusal {
        replaceProcess(check.path, from: check.path, descriptors: descriptors)
    }

    /// Executes this program anew, even if its file is there no more; returns why that failed.
    func restartProcess(descriptors: [NamedDescriptor]) -> UpgradeRefusal {
        replaceProcess(command, from: "/proc/self/exe", descriptors: descriptors)
    }

    private func replaceProcess(
        _ name: String,
        from file: String,
        descriptors: [NamedDescriptor]
    ) -> UpgradeRefusal {
        guard descriptors.count <= reserved else {
            return UpgradeRefusal(detail: "\(descriptors.count) descriptors are too many")
        }
        let program = HandoverProgram(
            arguments: [name] + arguments,
            environment: ProcessEnvironment.entries(without: HandoverProgram.variables),
            descriptors: descriptors
        )
        return UpgradeRefusal(detail: "\(program.replaceProcess(from: file))")
    }
}

/// Check of a program before this process becomes it: it has to print a version.
struct BinaryCheck {
    /// Identity and rights of the program's file.
    struct Facts: Equatable {
        var device: UInt64
        var number: UInt64
        var changed: Int64
    }

    let path: String
    let facts: Facts
    /// Descriptor that is readable when `read` has something to do.
    let descriptor: Int32
    private let processID: Int32
    private var output: [UInt8] = []
    private var hasEnded = false
    /// Whether its time was up, so that it was killed.
    private var isLate = false
    private(set) var deadline: Instant
    private let end: Instant

    /// Checks the file, and starts it with `--version`.
    init(_ path: String, at now: Instant) throws(UpgradeRefusal) {
        facts = try Self.facts(of: path)
        let child = unsafe kernel_spawn_reading(path, "--version")
        guard child.pid > 0 else {
            throw UpgradeRefusal(detail: "\(path): \(SystemError.text(-child.pid))")
        }
        self.path = path
        descriptor = child.descriptor
        processID = child.pid
        end = now.advanced(milliseconds: Self.patienceMilliseconds)
        deadline = end
    }

    /// Whether the program is still the one that was checked.
    var isCurrent: Bool { (try? Self.facts(of: path)) == facts }

    /// Returns the identity of a program that is safe to execute.
    static func facts(of path: String) throws(UpgradeRefusal) -> Facts {
        func refuse(_ reason: String) -> UpgradeRefusal {
            UpgradeRefusal(detail: "\(path) \(reason)")
        }
        var file = kernel_program()
        let status = unsafe kernel_program_facts(path, &file)
        guard status == 0 else { throw refuse("cannot be used: \(SystemError.text(-status))") }
        guard file.regular, file.executable else { throw refuse("is no program") }
        guard file.owner == 0 || file.owner == geteuid() else {
            throw refuse("belongs to neither root nor sfud's user")
        }
        guard !file.writable_by_others else { throw refuse("can be written to by others") }
        return Facts(device: file.device, number: file.number, changed: file.changed)
    }

    /// Outcome: the version, or why the program is refused.
    typealias Outcome = Result<String, UpgradeRefusal>

    /// Reads what the program prints; returns the outcome when it has ended, or its time is up.
    mutating func read(at now: Instant) -> Outcome? {
        while !hasEnded {
            var buffer = [UInt8](repeating: 0, count: 256)
            var places = buffer.mutableSpan
            let count = kernel_read(descriptor, &places)
            if count == Int64(-EAGAIN) { break }
            if count > 0, output.count < Self.longestOutput {
                output += buffer.prefix(Int(count))
            } else {
                hasEnded = true
            }
        }
        if hasEnded || isLate, kernel_child_ended(processID) { return outcome() }
        if now >= end, !isLate {
            isLate = true
            kernel_child_kill(processID)
        }
        // It has closed its output or was killed, and ends a moment later.
        if hasEnded || isLate { deadline = now.advanced(milliseconds: 5) }
        return nil
    }

    /// Ends the check; call it once, after the outcome.
    func close() { kernel_close(descriptor) }

    private func outcome() -> Outcome {
        guard !isLate else {
            return .failure(UpgradeRefusal(detail: "\(path) --version does not end"))
        }
        let words = String(decoding: output, as: UTF8.self).split(separator: " ")
        guard words.count == 2, words[0] == "sfud", words[1].last == "\n",
            let first = words[1].first, first.isNumber
        else { return .failure(UpgradeRefusal(detail: "\(path) --version prints no version")) }
        return .success(String(words[1].dropLast()))
    }

    private static let patienceMilliseconds: Int64 = 1_000
    private static let longestOutput = 256
}
