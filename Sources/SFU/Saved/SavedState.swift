import RTP
import WorkerInterface

/// State that an earlier process has left in its `SavedMemory`; it is only read.
///
/// Everything in it is checked: a record that makes no sense is as good as none.
@safe
package struct SavedState: @unchecked Sendable {
    /// One array: where its generations and elements begin, and how many there are.
    private struct Section {
        var generations: Int
        var elements: Int
        var capacity: Int
    }

    private let bytes: UnsafeRawBufferPointer
    /// Owner of the memory, which stays mapped as long as it lives.
    private let owner: AnyObject?
    private let layout: SavedLayout
    private let sections: [Section]

    /// Opens the memory of an earlier process.
    ///
    /// Returns `nil` for a version that this release cannot read, and for memory that no worker has
    /// written.
    package init?(_ bytes: UnsafeRawBufferPointer, owner: AnyObject?) {
        unsafe self.bytes = bytes
        self.owner = owner
        guard bytes.count >= SavedMemory.headerBytes,
            unsafe bytes.loadUnaligned(as: UInt64.self) == SavedMemory.magic,
            let layout = unsafe SavedLayout.of(
                version: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
            )
        else { return nil }
        self.layout = layout
        var sections: [Section] = []
        for section in SavedMemory.Section.allCases {
            let entry = SavedMemory.firstEntry + section.rawValue * SavedMemory.entryBytes
            let start = unsafe bytes.loadUnaligned(fromByteOffset: entry, as: UInt64.self)
            let capacity = unsafe bytes.loadUnaligned(fromByteOffset: entry + 8, as: UInt64.self)
            let stride = layout[section].stride
            guard start < UInt64(bytes.count), capacity < 1 << 24 else { return nil }
            let generations = Int(start)
            let elements = generations + SavedMemory.generationBytes(Int(capacity))
            guard elements + Int(capacity) * stride <= bytes.count else { return nil }
            sections.append(
                Section(generations: generations, elements: elements, capacity: Int(capacity))
            )
        }
        self.sections = sections
    }

    /// Returns the saved state of a transport; `nil` if there is none that can be used.
    func transport(_ id: TransportID) -> SavedTransport? {
        guard let start = start(of: id, in: .transports) else { return nil }
        let record = layout.transport
        var saved = SavedTransport()
        guard let profile = read(UInt16.self, "profile", of: record, at: start),
            SRTPProfile(rawValue: profile) != nil
        else { return nil }
        saved.profile = profile
        saved.consentGiven = read(Int64.self, "consentGiven", of: record, at: start) ?? .min
        saved.estimate = max(0, read(Int64.self, "estimate", of: record, at: start) ?? 0)
        saved.ssrc = read(UInt32.self, "ssrc", of: record, at: start) ?? 0
        // Without the index a number might be used twice.
        guard let rtcpHighest = read(UInt32.self, "rtcpHighest", of: record, at: start),
            rtcpHighest < 0x7fff_ffff, let keys = record.offsets["keys"]
        else { return nil }
        saved.rtcpHighest = rtcpHighest
        for index in 0..<SavedTransport.keyBytes {
            saved.keys[index] = byte(at: start + keys + index)
        }
        readPaths(at: start, into: &saved)
        readStreams(at: start, into: &saved)
        readDTLS(at: start, into: &saved)
        let isComplete =
            saved.selected < saved.pathCount && saved.pathCount <= SavedTransport.pathLimit
        return isComplete ? saved : nil
    }

    private func readPaths(at start: Int, into saved: inout SavedTransport) {
        guard let paths = layout.transport.offsets["paths"] else { return }
        let count = read(UInt8.self, "pathCount", of: layout.transport, at: start) ?? 0
        saved.pathCount = count
        guard count <= SavedTransport.pathLimit else { return }
        saved.selected = read(UInt8.self, "selected", of: layout.transport, at: start) ?? .max
        for index in 0..<Int(saved.pathCount) {
            let place = start + paths + index * layout.path.stride
            saved.paths[index] = SavedTransport.Path(
                high: read(UInt64.self, "high", of: layout.path, at: place) ?? 0,
                low: read(UInt64.self, "low", of: layout.path, at: place) ?? 0,
                port: read(UInt16.self, "port", of: layout.path, at: place) ?? 0,
                local: read(UInt16.self, "local", of: layout.path, at: place) ?? .max
            )
        }
    }

    private func readStreams(at start: Int, into saved: inout SavedTransport) {
        let limit = UInt8(SavedTransport.streamLimit)
        let record = layout.transport
        if let streams = record.offsets["streams"] {
            saved.streamCount = min(
                read(UInt8.self, "streamCount", of: record, at: start) ?? 0,
                limit
            )
            for index in 0..<Int(saved.streamCount) {
                let place = start + streams + index * layout.stream.stride
                let newest = read(UInt64.self, "rtpNewest", of: layout.stream, at: place) ?? 0
                saved.streams[index] = SavedTransport.Stream(
                    rtpNewest: min(newest, 1 << 48 - 1),
                    ssrc: read(UInt32.self, "ssrc", of: layout.stream, at: place) ?? 0,
                    rtcpNewest: read(UInt32.self, "rtcpNewest", of: layout.stream, at: place) ?? 0
                )
            }
        }
        guard let bindings = record.offsets["bindings"] else { return }
        saved.bindingCount = min(
            read(UInt8.self, "bindingCount", of: record, at: start) ?? 0,
            limit
        )
        for index in 0..<Int(saved.bindingCount) {
            let place = start + bindings + index * layout.binding.stride
            let record = layout.binding
            saved.bindings[index] = SavedTransport.Binding(
                base: read(Int64.self, "base", of: record, at: place) ?? .min,
                ssrc: read(UInt32.self, "ssrc", of: record, at: place) ?? 0,
                publication: read(UInt32.self, "publication", of: record, at: place) ?? 0,
                generation: read(UInt32.self, "generation", of: record, at: place) ?? 0,
                epoch: read(UInt32.self, "epoch", of: record, at: place) ?? 0,
                position: read(UInt8.self, "position", of: record, at: place) ?? .max,
                isRetransmission: read(UInt8.self, "isRetransmission", of: record, at: place) ?? 0
            )
        }
    }

    private func readDTLS(at start: Int, into saved: inout SavedTransport) {
        let record = layout.transport
        // Without the number a nonce might be used twice.
        guard let next = read(UInt64.self, "dtlsWriteNext", of: record, at: start),
            let offset = read(UInt64.self, "dtlsNonceOffset", of: record, at: start),
            let keys = record.offsets["dtlsKeys"], let flight = record.offsets["dtlsFlight"]
        else { return }
        saved.dtls.writeNext = next
        saved.dtls.nonceOffset = offset
        saved.dtls.readNewest = read(UInt64.self, "dtlsReadNewest", of: record, at: start) ?? 0
        saved.dtls.window = read(UInt64.self, "dtlsWindow", of: record, at: start) ?? .max
        saved.dtls.flightEnd = read(Int64.self, "dtlsFlightEnd", of: record, at: start) ?? 0
        saved.dtls.keyLength = read(UInt8.self, "dtlsKeyLength", of: record, at: start) ?? 0
        saved.dtls.flightLength = read(UInt8.self, "dtlsFlightLength", of: record, at: start) ?? 0
        saved.dtls.repeats = read(UInt8.self, "dtlsRepeats", of: record, at: start) ?? .max
        for index in saved.dtls.keys.indices {
            saved.dtls.keys[index] = byte(at: start + keys + index)
        }
        for index in saved.dtls.flight.indices {
            saved.dtls.flight[index] = byte(at: start + flight + index)
        }
    }

    /// Returns the last outgoing transport-wide sequence number.
    func transportSequence(of id: TransportID) -> UInt16? {
        start(of: id, in: .destinations).flatMap {
            read(UInt16.self, "transportSequence", of: layout.destination, at: $0)
        }
    }

    /// Numbering of a slot, and what its sender reports count.
    struct SavedSlot {
        var ssrc: UInt32
        var numbering: RTPRewriter.Saved
        var packets: UInt64
        var bytes: UInt64
        var octets: UInt32
        var rtxIndex: Int64
        /// Encoding that it carried, and is to go on with; `nil` if it waited for another.
        var flow: SavedFlow?
    }

    /// Returns the numbering of a slot; `nil` if an index might be used twice with it.
    func slot(_ id: SlotID) -> SavedSlot? {
        guard let start = start(of: id, in: .slots), let repair = self.start(of: id, in: .repairs),
            let ssrc = read(UInt32.self, "ssrc", of: layout.slot, at: start),
            let highest = read(Int64.self, "highest", of: layout.slot, at: start),
            let timestamp = read(UInt32.self, "lastTimestamp", of: layout.slot, at: start),
            let rtxIndex = read(Int64.self, "rtxIndex", of: layout.repair, at: repair),
            0..<1 << 48 ~= highest, 0..<1 << 48 ~= rtxIndex
        else { return nil }
        let arrival = read(Int64.self, "lastArrival", of: layout.slot, at: start) ?? 0
        let numbering = RTPRewriter.Saved(
            highest: highest,
            lastArrival: Instant(nanoseconds: max(0, arrival)),
            lastTimestamp: timestamp,
            lastPicture: read(UInt16.self, "lastPicture", of: layout.slot, at: start) ?? 0,
            lastTL0: read(UInt8.self, "lastTL0", of: layout.slot, at: start) ?? 0,
            hasStarted: (read(UInt8.self, "hasStarted", of: layout.slot, at: start) ?? 0) == 1,
            span: span(at: start)
        )
        return SavedSlot(
            ssrc: ssrc,
            numbering: numbering,
            packets: read(UInt64.self, "packets", of: layout.slot, at: start) ?? 0,
            bytes: read(UInt64.self, "bytes", of: layout.slot, at: start) ?? 0,
            octets: read(UInt32.self, "octets", of: layout.slot, at: start) ?? 0,
            rtxIndex: rtxIndex,
            flow: flow(at: repair, of: numbering)
        )
    }

    private func span(at start: Int) -> RTPRewriter.SequenceSpan {
        typealias Encoding = OptionalIndex<HandleKind.Encoding>
        let record = layout.slot
        let offset = read(Int64.self, "offset", of: record, at: start) ?? 0
        return RTPRewriter.SequenceSpan(
            offset: offset,
            encoding: read(Encoding.self, "encoding", of: record, at: start) ?? .none,
            epoch: read(UInt32.self, "epoch", of: record, at: start) ?? 0,
            timestampOffset: read(UInt32.self, "timestampOffset", of: record, at: start) ?? 0,
            pictureOffset: read(UInt16.self, "pictureOffset", of: record, at: start) ?? 0,
            tl0Offset: read(UInt8.self, "tl0Offset", of: record, at: start) ?? 0,
            point: LayerPoint(index: Int(read(UInt8.self, "point", of: record, at: start) ?? 0))
        )
    }

    /// Returns what a slot carried, if its span is of that encoding.
    private func flow(at start: Int, of numbering: RTPRewriter.Saved) -> SavedFlow? {
        typealias Encoding = OptionalIndex<HandleKind.Encoding>
        let record = layout.repair
        guard let publication = read(UInt32.self, "publication", of: record, at: start),
            let generation = read(UInt32.self, "generation", of: record, at: start),
            let encoding = read(Encoding.self, "encoding", of: record, at: start),
            let epoch = read(UInt32.self, "epoch", of: record, at: start),
            let position = read(UInt8.self, "position", of: record, at: start),
            numbering.hasStarted, numbering.span.encoding != .none,
            numbering.span.encoding == encoding, numbering.span.epoch == epoch,
            -(1 << 48)..<1 << 48 ~= numbering.span.offset
        else { return nil }
        return SavedFlow(
            publication: publication,
            generation: generation,
            epoch: epoch,
            homeEpoch: read(UInt32.self, "homeEpoch", of: record, at: start) ?? 0,
            position: position
        )
    }

    /// Whether a transport was connected in the earlier process.
    func hasTransport(_ id: TransportID) -> Bool { start(of: id, in: .transports) != nil }

    /// Whether the earlier process had a slot.
    func hasSlot(_ id: SlotID) -> Bool { start(of: id, in: .slots) != nil }

    /// Returns where the record of a handle begins, if the array holds that very object.
    private func start<Kind>(of id: Handle<Kind>, in section: SavedMemory.Section) -> Int? {
        let place = sections[section.rawValue]
        let index = Int(id.index)
        guard index < place.capacity, id.generation != 0 else { return nil }
        let generation = unsafe bytes.loadUnaligned(
            fromByteOffset: place.generations + 4 * index,
            as: UInt32.self
        )
        guard generation == id.generation else { return nil }
        return place.elements + index * layout[section].stride
    }

    private func byte(at offset: Int) -> UInt8 {
        unsafe offset < bytes.count ? bytes[offset] : 0
    }

    private func read<Value: BitwiseCopyable>(
        _ type: Value.Type,
        _ field: String,
        of record: SavedLayout.Record,
        at start: Int
    ) -> Value? {
        guard let offset = record.offsets[field],
            unsafe start + offset + MemoryLayout<Value>.size <= bytes.count
        else { return nil }
        return unsafe bytes.loadUnaligned(fromByteOffset: start + offset, as: type)
    }
}

extension SavedLayout {
    fileprivate subscript(section: SavedMemory.Section) -> Record {
        switch section {
        case .transports: transport
        case .destinations: destination
        case .slots: slot
        case .repairs: repair
        }
    }
}
