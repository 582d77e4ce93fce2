import CKernel
import Kernel

/// Descriptors that this process got by the protocol of sd_listen_fds(3).
///
/// They come from the service manager after a crash, and from the process before in an upgrade.
struct InheritedDescriptors {
    private var descriptors: [NamedDescriptor]

    /// Takes the descriptors over from the environment, which loses the variables, and lets no
    /// other program inherit them.
    ///
    /// The numbers from 3 on, `reserved` of them, stay unused: they are those of the descriptors
    /// that are handed over in an upgrade, while other threads use theirs. Call it before the first
    /// other thread starts and before any file is opened.
    static func takeOver(reserving reserved: Int) -> Self {
        defer { ProcessEnvironment.unset(HandoverProgram.variables) }
        var inherited = Self(
            processID: ProcessEnvironment["LISTEN_PID"],
            count: ProcessEnvironment["LISTEN_FDS"],
            names: ProcessEnvironment["LISTEN_FDNAMES"]
        )
        let end = 3 + Int32(clamping: reserved)
        for index in inherited.descriptors.indices {
            let moved = kernel_move_descriptor(inherited.descriptors[index].descriptor, end)
            if moved >= 0 { inherited.descriptors[index].descriptor = moved }
        }
        kernel_occupy_descriptors(end)
        return inherited
    }

    /// Reads the values of `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`.
    init(
        processID: String?,
        count: String?,
        names: String?,
        first: Int32 = 3,
        ownProcessID: Int32 = kernel_process_id()
    ) {
        descriptors = []
        guard let processID, processID == "\(ownProcessID)", let count = count.flatMap(Int32.init),
            (1...Self.limit).contains(count)
        else { return }
        let names = (names ?? "").split(separator: ":", omittingEmptySubsequences: false)
        for index in 0..<count {
            let descriptor = first + index
            guard kernel_set_close_on_exec(descriptor, true) == 0 else { continue }
            let name = Int(index) < names.count ? String(names[Int(index)]) : ""
            descriptors.append(NamedDescriptor(name: name, descriptor: descriptor))
        }
    }

    init(_ descriptors: [NamedDescriptor] = []) { self.descriptors = descriptors }

    var names: [String] { descriptors.map(\.name) }

    /// Takes the descriptor of a name; the caller closes it.
    ///
    /// Of several it is the one that was stored last; the others are closed.
    mutating func take(_ name: String) -> Int32? {
        let found = descriptors.filter { $0.name == name }
        descriptors.removeAll { $0.name == name }
        for other in found.dropLast() { kernel_close(other.descriptor) }
        return found.last?.descriptor
    }

    /// Most descriptors that are taken: those of any service manager.
    private static let limit: Int32 = 4_096
}
