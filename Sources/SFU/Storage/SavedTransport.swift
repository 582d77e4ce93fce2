import RTP
import WorkerInterface

/// State of a connected transport that outlives the process.
///
/// It lies in `SavedMemory`, and its fields are read by later releases: `SavedLayout` names their
/// places.
struct SavedTransport: BitwiseCopyable {
    /// Highest authenticated indexes of an incoming SSRC.
    struct Stream: BitwiseCopyable {
        var rtpNewest: UInt64 = 0
        var ssrc: UInt32 = 0
        var rtcpNewest: UInt32 = 0
    }

    /// Encoding that an incoming SSRC is bound to.
    struct Binding: BitwiseCopyable {
        /// Number of a packet less its SRTP index; `.min` before the first packet.
        var base = Int64.min
        var ssrc: UInt32 = 0
        /// Handle of the publication, and the encoding's position in it.
        var publication: UInt32 = 0
        var generation: UInt32 = 0
        /// Epoch of the encoding's numbering.
        var epoch: UInt32 = 0
        var position: UInt8 = 0
        var isRetransmission: UInt8 = 0
    }

    struct Path: BitwiseCopyable {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var port: UInt16 = 0
        var local: UInt16 = 0
    }

    /// Incoming SSRCs that are saved; others are found again with their first packets, as long as
    /// their roll-over counter is within reach of `RolloverCounterSearch`.
    static let streamLimit = 24
    static let pathLimit = 8
    /// Bytes of the longest keys and salts of both directions.
    static let keyBytes = 2 * (32 + 12)

    /// Time when consent for the selected path was given, in nanoseconds; `.min` without consent.
    var consentGiven = Int64.min
    /// Last estimate of the path in bits a second; 0 if none is known.
    var estimate: Int64 = 0
    /// SSRC of our feedback.
    var ssrc: UInt32 = 0
    /// Highest SRTCP index used with any of our SSRCs.
    var rtcpHighest: UInt32 = 0
    /// Number of the SRTP profile (RFC 5764 §4.1.2).
    var profile: UInt16 = 0
    /// Position of the selected path; `.max` without one.
    var selected = UInt8.max
    var pathCount: UInt8 = 0
    var streamCount: UInt8 = 0
    var bindingCount: UInt8 = 0
    /// Local key and salt, then the peer's.
    var keys = [88 of UInt8](repeating: 0)
    var paths = [8 of Path](repeating: Path())
    var streams = [24 of Stream](repeating: Stream())
    var bindings = [24 of Binding](repeating: Binding())
    /// DTLS association; its `keyLength` is 0 without one.
    var dtls = DTLSRecordState()
}

/// Direct access to a saved transport for its SRTP session, which outlives no transport.
@safe
struct SavedPlace: BitwiseCopyable {
    private let record: UnsafeMutablePointer<SavedTransport>

    init(_ record: UnsafeMutablePointer<SavedTransport>) { unsafe self.record = record }

    /// Stores an SRTCP index before a packet is encrypted with it.
    func noteRTCPOut(_ index: UInt32) {
        unsafe record.pointee.rtcpHighest = max(record.pointee.rtcpHighest, index)
    }

    /// Stores a DTLS association whose handshake is done.
    func note(_ association: DTLSRecordState) { unsafe record.pointee.dtls = association }

    /// Stores the number of the next DTLS record before one is encrypted.
    func noteDTLSOut(next: UInt64) { unsafe record.pointee.dtls.writeNext = next }

    /// Stores the replay window of the peer's DTLS records.
    func noteDTLSIn(newest: UInt64, window: UInt64) {
        unsafe record.pointee.dtls.window = window
        unsafe record.pointee.dtls.readNewest = newest
    }

    /// Stores how often our last flight was sent again, before it is.
    func noteDTLSRepeats(_ count: UInt8) { unsafe record.pointee.dtls.repeats = count }

    /// Stores the highest indexes of the incoming stream at a place, if it has room for it.
    func note(_ stream: SavedTransport.Stream, at place: Int) {
        guard place < SavedTransport.streamLimit else { return }
        unsafe record.pointee.streams[place] = stream
    }

    func noteCount(_ count: Int) {
        unsafe record.pointee.streamCount = UInt8(min(count, SavedTransport.streamLimit))
    }
}
