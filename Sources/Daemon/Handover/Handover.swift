import CKernel
import Foundation
import Kernel

/// Descriptors that go from one life of the daemon to the next.
///
/// Used by the control thread, and before it starts.
final class Handover {
    private var inherited: InheritedDescriptors
    private var store: DescriptorStore
    private let log: Log
    let manager: ServiceManager

    init(_ inherited: InheritedDescriptors, _ manager: ServiceManager, _ log: Log) {
        self.inherited = inherited
        self.manager = manager
        self.log = log
        store = DescriptorStore(manager)
        if !inherited.names.isEmpty {
            log.info("descriptors inherited", [("count", "\(inherited.names.count)")])
        }
    }

    /// Handover of a process that inherits nothing and has no service manager.
    static func none(_ log: Log) -> Handover {
        Handover(InheritedDescriptors(), ServiceManager(environment: [:], processID: 0), log)
    }

    /// Descriptors that the next process gets.
    var kept: [NamedDescriptor] { store.kept }

    /// Takes an inherited descriptor and makes `adopt` check it; closes it if that returns `nil`.
    ///
    /// If it is adopted, the next process gets it too.
    func adopt<Adopted>(_ name: String, _ adopt: (Int32) -> Adopted?) -> Adopted? {
        guard let descriptor = inherited.take(name) else { return nil }
        if let adopted = adopt(descriptor) {
            store.retain(descriptor, as: name)
            return adopted
        }
        log.warning("inherited descriptor does not fit", cause: name, [("name", name)])
        discard(descriptor, name)
        return nil
    }

    /// Keeps a new descriptor for the next process; it has to stay open.
    func keep(_ descriptor: Int32, as name: String) {
        guard let reason = store.store(descriptor, as: name) else { return }
        log.warning("descriptor is not kept", cause: reason, [("name", name), ("reason", reason)])
    }

    /// Keeps the descriptors of a name no longer.
    func forget(_ name: String) { store.remove(name) }

    /// Closes inherited descriptors that nobody has taken: `isExpected` says which may still be.
    func closeRest(except isExpected: (String) -> Bool = { _ in false }) {
        for name in Set(inherited.names) where !isExpected(name) {
            guard let descriptor = inherited.take(name) else { continue }
            log.info("inherited descriptor closed", [("name", name)])
            discard(descriptor, name)
        }
    }

    /// Closes a descriptor, and keeps it for no other life.
    func discard(_ descriptor: Int32, _ name: String) {
        kernel_close(descriptor)
        if NamedDescriptor.isValid(name: name) { store.remove(name) }
    }
}

/// Descriptors of this process that the next one gets.
///
/// The service manager holds them too, if there is one, so that they outlive a crash.
struct DescriptorStore {
    private let manager: ServiceManager
    /// Descriptors to hand over in an upgrade.
    private(set) var kept: [NamedDescriptor] = []

    init(_ manager: ServiceManager) { self.manager = manager }

    /// Keeps a descriptor that the manager does not hold yet; returns why it does not hold it.
    ///
    /// The descriptor has to stay open.
    mutating func store(_ descriptor: Int32, as name: String) -> String? {
        guard kept.count < HandoverProgram.descriptorLimit else {
            return "more than \(HandoverProgram.descriptorLimit) descriptors"
        }
        kept.append(NamedDescriptor(name: name, descriptor: descriptor))
        return manager.store(descriptor, as: name).map { SystemError.text($0) }
    }

    /// Keeps a descriptor that was inherited, so that the manager holds it already.
    mutating func retain(_ descriptor: Int32, as name: String) {
        kept.append(NamedDescriptor(name: name, descriptor: descriptor))
    }

    /// Keeps the descriptors of a name no longer, here and at the manager.
    mutating func remove(_ name: String) {
        kept.removeAll { $0.name == name }
        _ = manager.remove(name)
    }
}
