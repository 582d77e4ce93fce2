/// Memory of one worker that outlives the process, and the places of its arrays in it.
///
/// The worker changes its state in place there, with ordinary stores. Whatever kills the process,
/// the last store is in the memory, and the next process reads it (`SavedState`). One core uses it.
///
///     header: magic, version, then the place of each array
///     an array: generations (UInt32 each, 0: empty), then the elements
@safe
package struct SavedMemory: @unchecked Sendable {
    /// Arrays in the order of the header.
    package enum Section: Int, CaseIterable { case transports, destinations, slots, repairs }

    /// Version of the format: it changes whenever a stored field moves or changes its meaning.
    package static let version: UInt32 = 1
    /// First bytes of the memory: "sfudwrkr".
    static let magic: UInt64 = 0x726b_7277_6475_6673
    static let headerBytes = 4_096
    /// Bytes of one section's entry in the header, and where the entries begin.
    static let entryBytes = 24
    static let firstEntry = 16

    /// Elements that each section has room for.
    package let transports: Int
    package let slots: Int
    private let bytes: UnsafeMutableRawBufferPointer

    /// Takes over zeroed memory; it has to stay mapped as long as the worker's core.
    ///
    /// - Parameters:
    ///   - bytes: At least `byteCount(transports:slots:)` bytes, page-aligned.
    ///   - transports: Highest number of transports.
    ///   - slots: Highest number of slots.
    package init(_ bytes: UnsafeMutableRawBufferPointer, transports: Int, slots: Int) {
        precondition(
            bytes.count >= Self.byteCount(transports: transports, slots: slots),
            "the memory has room for all arrays"
        )
        unsafe self.bytes = bytes
        self.transports = transports
        self.slots = slots
        for section in Section.allCases {
            let entry = Self.firstEntry + section.rawValue * Self.entryBytes
            unsafe bytes.storeBytes(
                of: UInt64(offset(of: section)),
                toByteOffset: entry,
                as: UInt64.self
            )
            unsafe bytes.storeBytes(
                of: UInt64(capacity(of: section)),
                toByteOffset: entry + 8,
                as: UInt64.self
            )
        }
        unsafe bytes.storeBytes(of: Self.version, toByteOffset: 8, as: UInt32.self)
        unsafe bytes.storeBytes(of: Self.magic, as: UInt64.self)
    }

    /// Bytes that a worker with so many transports and slots needs; pages that hold nothing are
    /// never touched.
    package static func byteCount(transports: Int, slots: Int) -> Int {
        Section.allCases.reduce(headerBytes) { sum, section in
            sum + byteCount(of: section, capacity: section.isPerSlot ? slots : transports)
        }
    }

    /// Elements that a section has room for.
    func capacity(of section: Section) -> Int { section.isPerSlot ? slots : transports }

    /// Address of a section's generations; its elements follow at a multiple of 64 bytes.
    func generations(of section: Section) -> UnsafeMutablePointer<UInt32> {
        unsafe (base + offset(of: section)).assumingMemoryBound(to: UInt32.self)
    }

    /// Address of a section's elements.
    func elements(of section: Section) -> UnsafeMutableRawPointer {
        let capacity = capacity(of: section)
        return unsafe base + offset(of: section) + Self.generationBytes(capacity)
    }

    private var base: UnsafeMutableRawPointer {
        guard let base = unsafe bytes.baseAddress else {
            preconditionFailure("the memory is not empty")
        }
        return unsafe base
    }

    private func offset(of section: Section) -> Int {
        var offset = Self.headerBytes
        for other in Section.allCases where other.rawValue < section.rawValue {
            offset += Self.byteCount(of: other, capacity: capacity(of: other))
        }
        return offset
    }

    static func generationBytes(_ capacity: Int) -> Int { (4 * capacity + 63) / 64 * 64 }

    private static func byteCount(of section: Section, capacity: Int) -> Int {
        let bytes = generationBytes(capacity) + capacity * section.stride
        return (bytes + 4_095) / 4_096 * 4_096
    }
}

extension SavedMemory.Section {
    /// Bytes from one element to the next.
    var stride: Int {
        switch self {
        case .transports: MemoryLayout<SavedTransport>.stride
        case .destinations: 64
        case .slots: 128
        case .repairs: 32
        }
    }

    fileprivate var isPerSlot: Bool {
        switch self {
        case .transports, .destinations: false
        case .slots, .repairs: true
        }
    }
}
