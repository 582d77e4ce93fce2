package import WorkerInterface

/// Allocators of one worker's transport, publication and slot handles.
package struct WorkerIdentifiers: Sendable {
    package var transports: HandleAllocator<HandleKind.Transport>
    package var publications: HandleAllocator<HandleKind.Publication>
    package var slots: HandleAllocator<HandleKind.Slot>

    package init(transports: Int, publications: Int, slots: Int) {
        self.transports = HandleAllocator(capacity: transports)
        self.publications = HandleAllocator(capacity: publications)
        self.slots = HandleAllocator(capacity: slots)
    }
}
