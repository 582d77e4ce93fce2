import RTP
import WorkerInterface

/// What one worker tells another, by value: it lies in a place of a ring.
struct RelayMessage: BitwiseCopyable {
    enum Kind: UInt8, BitwiseCopyable {
        /// From the home: a packet that has passed ingress and gate; its bytes lie beside it.
        case packet
        /// From a mirror: somebody there waits for a keyframe of the encoding at `position`.
        case keyframeWanted
        /// From a mirror: it begins with what the home holds since `info.arrival`.
        case soundWanted
    }

    var kind: Kind
    /// The reader's publication.
    var target: PublicationID
    /// The writer's.
    var source: PublicationID
    /// Which of the publication's encodings is meant, as the offer lists them.
    var position: UInt8
    /// The highest encoding that is live, for who takes that one; `noPosition` before there is one.
    var best = Self.noPosition
    /// Bytes of the packet.
    var length: UInt16 = 0
    /// Packets before this one found the ring full.
    var followsGap = false
    /// Pixels of the encoding, and of the packet's own spatial layer; 0 while unknown.
    var width: UInt16 = 0
    var height: UInt16 = 0
    var layerSize = LayerMeter.Size()
    var captured: CaptureTime?
    /// As the home's ingress found it, with the home's encoding and epoch.
    var info = PacketInfo()

    static let noPosition = UInt8.max

    init(_ kind: Kind, to target: PublicationID, from source: PublicationID, position: Int) {
        self.kind = kind
        self.target = target
        self.source = source
        self.position = UInt8(clamping: position)
    }
}

/// A point of a stream's RTP clock and of ours, for lip sync.
struct CaptureTime: BitwiseCopyable {
    /// When, on our monotonic clock, that was captured which has the timestamp.
    var instant: Instant
    var timestamp: UInt32
}
