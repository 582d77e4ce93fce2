import RTP
import WorkerInterface

/// Message from one worker to another, stored by value in a ring.
struct RelayMessage: BitwiseCopyable {
    enum Kind: UInt8, BitwiseCopyable {
        /// From the home: a packet that passed ingress and gate; its bytes lie beside the message.
        case packet
        /// From a mirror: a request for a keyframe of the encoding at `position`.
        case keyframeRequested
        /// From a mirror: a request for the packets that the home holds since `info.arrival`.
        case heldAudioRequest
        /// From a mirror: a request for the warm picture.
        case pictureRequest
        /// From the home: a packet of the warm picture, which is not forwarded by itself.
        case picture
        /// From a home at another node: the encodings that its link does not carry now, one bit
        /// each, in `position`.
        case withheld
    }

    var kind: Kind
    /// Publication of the reader.
    var target: PublicationID
    /// Publication of the writer.
    var source: PublicationID
    /// Position of the encoding within its publication, in the order of the offer.
    var position: UInt8
    /// Highest encoding that is live, for readers of the best one; `noPosition` if there is none.
    var best = Self.noPosition
    /// Length of the packet, in bytes.
    var length: UInt16 = 0
    /// Numbers from this packet of a warm picture up to the next one in it, or to its end.
    var covered: UInt16 = 0
    /// Whether this is the last packet of a warm picture.
    var endsPicture = false
    /// Whether packets before this one found the ring full.
    var followsGap = false
    /// Pixels of the encoding, and of the packet's own spatial layer; 0 while unknown.
    var width: UInt16 = 0
    var height: UInt16 = 0
    var layerSize = LayerSize()
    var captured: CaptureTime?
    /// Packet info of the home's ingress, with the home's encoding and epoch.
    var info = PacketInfo()

    /// Pixels of the packet's own spatial layer, or of the encoding while that is unknown.
    var size: LayerSize {
        layerSize.width > 0 ? layerSize : LayerSize(width: width, height: height)
    }

    static let noPosition = UInt8.max

    init(_ kind: Kind, to target: PublicationID, from source: PublicationID, position: Int) {
        self.kind = kind
        self.target = target
        self.source = source
        self.position = UInt8(clamping: position)
    }
}

/// Pair of an RTP timestamp and a time on our clock, for lip sync.
struct CaptureTime: BitwiseCopyable {
    /// Capture time of `timestamp`, on our monotonic clock.
    var instant: Instant
    var timestamp: UInt32
}
