import CKernel
import Kernel

/// Notification from the child, as sd_notify(3) describes it; unknown lines are ignored.
struct Notification: Equatable {
    enum Watchdog: Equatable {
        case alive
        /// The child asks to be treated as one that stands still.
        case trigger
    }

    var isReady = false
    var isStopping = false
    var watchdog: Watchdog?
    /// New length of the watchdog's time, in microseconds.
    var watchdogMicroseconds: Int64?
    /// Whether attached descriptors are to be stored.
    var stores = false
    /// Whether stored descriptors of this name are to be closed.
    var removes = false
    /// Valid name of descriptors.
    var name: String?
    /// Lines that a service manager above the keeper gets too.
    var forwarded: [String] = []

    /// Parses lines `NAME=VALUE`.
    init(_ text: some Collection<UInt8>) {
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        for line in lines.prefix(Self.lineLimit) { take(line) }
    }

    private mutating func take(_ line: Substring) {
        let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return }
        let value = parts[1]
        switch parts[0] {
        case "READY": isReady = isReady || value == "1"
        case "STOPPING": isStopping = isStopping || value == "1"
        case "WATCHDOG":
            if value == "1" { watchdog = .alive }
            if value == "trigger" { watchdog = .trigger }
        case "WATCHDOG_USEC":
            if let time = Int64(value), time > 0 { watchdogMicroseconds = time }
            return
        case "FDSTORE": stores = stores || value == "1"
        case "FDSTOREREMOVE": removes = removes || value == "1"
        case "FDNAME": if NamedDescriptor.isValid(name: String(value)) { name = String(value) }
        default: break
        }
        if Self.forwardedNames.contains(parts[0]) { forwarded.append(String(line)) }
    }

    private static let lineLimit = 32
    private static let forwardedNames: Set<Substring> = [
        "READY", "STOPPING", "RELOADING", "MONOTONIC_USEC", "STATUS", "WATCHDOG",
    ]
}

/// Descriptors that the child has stored, in the order of their arrival.
struct StoredDescriptors {
    private(set) var all: [NamedDescriptor] = []
    private let limit: Int

    init(limit: Int = HandoverProgram.descriptorLimit) { self.limit = limit }

    enum Addition: Equatable {
        case stored
        /// The same file is stored already; as with systemd, the new descriptor is closed.
        case known
        case full
    }

    /// Keeps a descriptor, or closes it.
    mutating func add(_ descriptor: Int32, as name: String) -> Addition {
        guard !all.contains(where: { kernel_same_file($0.descriptor, descriptor) }) else {
            kernel_close(descriptor)
            return .known
        }
        guard all.count < limit else {
            kernel_close(descriptor)
            return .full
        }
        all.append(NamedDescriptor(name: name, descriptor: descriptor))
        return .stored
    }

    /// Closes all descriptors of a name.
    mutating func remove(_ name: String) {
        for entry in all where entry.name == name { kernel_close(entry.descriptor) }
        all.removeAll { $0.name == name }
    }
}
