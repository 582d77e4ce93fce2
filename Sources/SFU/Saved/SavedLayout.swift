/// Places of the stored fields in each format version: what a later release reads by.
///
/// The fields lie where the compiler puts them, so that the packet path can work on them in place.
/// A test holds the newest table against the types; a change there needs a new version, and the
/// old table stays for the release that reads it.
struct SavedLayout: Equatable {
    /// Places of one record's fields, in bytes from its start.
    struct Record: Equatable {
        /// Bytes from one record to the next.
        var stride: Int
        var offsets: [String: Int]
    }

    var transport: Record
    var stream: Record
    var binding: Record
    var path: Record
    var destination: Record
    var slot: Record
    var repair: Record

    /// Returns the table of a version; `nil` for a version that this release does not know.
    static func of(version: UInt32) -> Self? {
        switch version {
        case 1: version1
        default: nil
        }
    }

    static let version1 = Self(
        transport: Record(
            stride: 1_680,
            offsets: [
                "consentGiven": 0, "estimate": 8, "ssrc": 16, "rtcpHighest": 20, "profile": 24,
                "selected": 26, "pathCount": 27, "streamCount": 28, "bindingCount": 29, "keys": 30,
                "paths": 120, "streams": 312, "bindings": 696, "dtlsWriteNext": 1_464,
                "dtlsNonceOffset": 1_472, "dtlsReadNewest": 1_480, "dtlsWindow": 1_488,
                "dtlsFlightEnd": 1_496, "dtlsKeyLength": 1_504, "dtlsFlightLength": 1_505,
                "dtlsRepeats": 1_506, "dtlsKeys": 1_507, "dtlsFlight": 1_579,
            ]
        ),
        stream: Record(stride: 16, offsets: ["rtpNewest": 0, "ssrc": 8, "rtcpNewest": 12]),
        binding: Record(
            stride: 32,
            offsets: [
                "base": 0, "ssrc": 8, "publication": 12, "generation": 16, "epoch": 20,
                "position": 24, "isRetransmission": 25,
            ]
        ),
        path: Record(stride: 24, offsets: ["high": 0, "low": 8, "port": 16, "local": 18]),
        destination: Record(stride: 64, offsets: ["transportSequence": 22]),
        slot: Record(
            stride: 128,
            offsets: [
                "offset": 8, "encoding": 16, "epoch": 20, "timestampOffset": 24,
                "pictureOffset": 28, "tl0Offset": 30, "point": 31, "highest": 32,
                "lastArrival": 40, "lastTimestamp": 48, "lastPicture": 52, "lastTL0": 54,
                "hasStarted": 55, "ssrc": 72, "packets": 80, "bytes": 88, "octets": 96,
            ]
        ),
        repair: Record(
            stride: 32,
            offsets: [
                "rtxIndex": 0, "publication": 8, "generation": 12, "encoding": 16, "epoch": 20,
                "homeEpoch": 24, "position": 28,
            ]
        )
    )

    /// Table of the types as they are compiled now.
    static var compiled: Self {
        Self(
            transport: SavedTransport.savedRecord,
            stream: SavedTransport.Stream.savedRecord,
            binding: SavedTransport.Binding.savedRecord,
            path: SavedTransport.Path.savedRecord,
            destination: Destination.savedRecord,
            slot: Slot.savedRecord,
            repair: SavedRepair.savedRecord
        )
    }
}

extension SavedLayout.Record {
    /// Describes a type by the key paths of its stored fields.
    init<Stored: BitwiseCopyable>(_ fields: KeyValuePairs<String, PartialKeyPath<Stored>>) {
        stride = MemoryLayout<Stored>.stride
        offsets = [:]
        for (name, path) in fields { offsets[name] = Self.offset(of: path) }
    }

    static func offset<Stored>(of path: PartialKeyPath<Stored>) -> Int {
        guard let offset = MemoryLayout<Stored>.offset(of: path) else {
            preconditionFailure("saved fields are stored ones")
        }
        return offset
    }
}

extension SavedTransport {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record([
            "consentGiven": \Self.consentGiven, "estimate": \Self.estimate,
            "ssrc": \Self.ssrc, "rtcpHighest": \Self.rtcpHighest, "profile": \Self.profile,
            "selected": \Self.selected, "pathCount": \Self.pathCount,
            "streamCount": \Self.streamCount, "bindingCount": \Self.bindingCount,
            "keys": \Self.keys, "paths": \Self.paths, "streams": \Self.streams,
            "bindings": \Self.bindings, "dtlsWriteNext": \Self.dtls.writeNext,
            "dtlsNonceOffset": \Self.dtls.nonceOffset, "dtlsReadNewest": \Self.dtls.readNewest,
            "dtlsWindow": \Self.dtls.window, "dtlsFlightEnd": \Self.dtls.flightEnd,
            "dtlsKeyLength": \Self.dtls.keyLength,
            "dtlsFlightLength": \Self.dtls.flightLength, "dtlsRepeats": \Self.dtls.repeats,
            "dtlsKeys": \Self.dtls.keys, "dtlsFlight": \Self.dtls.flight,
        ])
    }
}

extension SavedTransport.Stream {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record([
            "rtpNewest": \Self.rtpNewest, "ssrc": \Self.ssrc, "rtcpNewest": \Self.rtcpNewest,
        ])
    }
}

extension SavedTransport.Binding {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record([
            "base": \Self.base, "ssrc": \Self.ssrc, "publication": \Self.publication,
            "generation": \Self.generation, "epoch": \Self.epoch, "position": \Self.position,
            "isRetransmission": \Self.isRetransmission,
        ])
    }
}

extension SavedTransport.Path {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record([
            "high": \Self.high, "low": \Self.low, "port": \Self.port, "local": \Self.local,
        ])
    }
}

extension Destination {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record(["transportSequence": \Self.transportSequence])
    }
}

extension SavedRepair {
    fileprivate static var savedRecord: SavedLayout.Record {
        SavedLayout.Record([
            "rtxIndex": \Self.rtxIndex, "publication": \Self.flow.publication,
            "generation": \Self.flow.generation, "encoding": \Self.flow.encoding,
            "epoch": \Self.flow.epoch, "homeEpoch": \Self.flow.homeEpoch,
            "position": \Self.flow.position,
        ])
    }
}

extension Slot {
    fileprivate static var savedRecord: SavedLayout.Record {
        var record = SavedLayout.Record([
            "ssrc": \Self.ssrc, "packets": \Self.packets, "bytes": \Self.bytes,
            "octets": \Self.octets,
        ])
        let start = SavedLayout.Record.offset(of: \Self.rewriter)
        for (name, path) in RTPRewriter.savedFields {
            record.offsets[name] = start + SavedLayout.Record.offset(of: path)
        }
        return record
    }
}
