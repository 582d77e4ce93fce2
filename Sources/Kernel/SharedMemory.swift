internal import CKernel
import Glibc

/// Memory that lives as long as a descriptor of it is open, in this process or in another.
///
/// It is sealed against shrinking, so that an access never faults, and left out of core dumps.
@safe
package final class SharedMemory: @unchecked Sendable {
    package let descriptor: Int32
    /// The memory; it stays mapped as long as this object.
    package let bytes: UnsafeMutableRawBufferPointer
    private let ownsDescriptor: Bool

    /// Creates zeroed memory; pages that nobody touches cost nothing.
    package init(named name: String, byteCount: Int) throws(SystemError) {
        let descriptor = unsafe kernel_memory_create(name, UInt64(byteCount))
        guard descriptor >= 0 else {
            throw SystemError(operation: "memfd_create", number: -descriptor)
        }
        guard let start = unsafe kernel_memory_map(descriptor, UInt64(byteCount), true) else {
            kernel_close(descriptor)
            throw SystemError(operation: "mmap", number: ENOMEM)
        }
        self.descriptor = descriptor
        unsafe bytes = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
        ownsDescriptor = true
    }

    /// Maps the memory that an earlier process has left; `nil` if the descriptor is no such memory.
    ///
    /// The caller keeps the descriptor.
    package init?(adopting descriptor: Int32, isWritable: Bool) {
        let byteCount = kernel_memory_bytes(descriptor)
        guard byteCount > 0,
            let start = unsafe kernel_memory_map(descriptor, UInt64(byteCount), isWritable)
        else { return nil }
        self.descriptor = descriptor
        unsafe bytes = UnsafeMutableRawBufferPointer(start: start, count: Int(byteCount))
        ownsDescriptor = false
    }

    deinit {
        if let start = unsafe bytes.baseAddress {
            unsafe kernel_memory_unmap(start, UInt64(bytes.count))
        }
        if ownsDescriptor { kernel_close(descriptor) }
    }

    /// Gives back the whole pages in a part of shared memory, the contents of which are lost.
    package static func release(_ part: UnsafeMutableRawBufferPointer) {
        guard let start = part.baseAddress else { return }
        unsafe kernel_memory_release(start, UInt64(part.count))
    }

    /// Stores 1 there when a fault of this process ends it.
    ///
    /// - Parameter offset: A multiple of 8, in bytes.
    package func markFaults(at offset: Int) {
        precondition(unsafe offset >= 0 && offset % 8 == 0 && offset + 8 <= bytes.count)
        guard let start = unsafe bytes.baseAddress else { return }
        unsafe kernel_mark_faults(start + offset)
    }

    /// Stores a word after everything that was stored before it; `offset`, in bytes, is a multiple
    /// of 8.
    package func publish(_ value: UInt64, at offset: Int) {
        precondition(unsafe offset >= 0 && offset % 8 == 0 && offset + 8 <= bytes.count)
        guard let start = unsafe bytes.baseAddress else { return }
        unsafe kernel_store_release(start + offset, value)
    }
}
