import RTP
import WorkerInterface

/// Parsed metadata of one decrypted packet, so that it is parsed only once.
///
/// All offsets count from the packet's first byte; an offset of 0 means that the field is absent.
struct PacketInfo: BitwiseCopyable {
    /// Position and length of a header extension element in the packet.
    struct Element: BitwiseCopyable {
        var offset: UInt16 = 0
        var length: UInt8 = 0
    }

    struct Flags: OptionSet, BitwiseCopyable {
        let rawValue: UInt8
        static let marker = Self(rawValue: 1)
        /// First packet of a keyframe.
        static let keyframeStart = Self(rawValue: 2)
        static let longPictureID = Self(rawValue: 4)
        /// Received as a retransmission (RFC 4588).
        static let repaired = Self(rawValue: 8)
        /// Padding only; the gap is closed in the subscribers' sequence numbers.
        static let skipped = Self(rawValue: 16)
        /// `pictureID` holds the dependency descriptor's frame number.
        static let frameNumbered = Self(rawValue: 32)
        /// Decoders expect consecutive values of `pictureID`, so a dropped picture must leave no
        /// gap (VP8).
        static let countsPictures = Self(rawValue: 64)
        /// All packets of a lower layer also belong to the higher ones.
        static let nestsLayers = Self(rawValue: 128)
    }

    var arrival = Instant(nanoseconds: 0)
    /// Index of its encoding.
    var encoding = EncodingIndex(0)
    /// Epoch of the encoding's sequence numbering, unique in the worker.
    var epoch: UInt32 = 0
    var timestamp: UInt32 = 0
    var sequence = SequenceNumber(rawValue: 0)
    /// Sequence number with wraps counted; it never goes back when the sender restarts.
    var number: Int64 = 0
    var payloadOffset: UInt16 = 0
    var payloadLength: UInt16 = 0
    var payloadType: UInt8 = 0
    var flags: Flags = []

    /// Layer points that the packet is sent to; all for a stream without layers.
    var points = LayerPoints.all
    /// Layer points for which it is the last packet of a picture, so that the marker bit is set.
    var marks = LayerPoints.none
    /// Layer points that can be switched to at this first packet of a frame, from one of `bases`.
    var switches = LayerPoints.none
    var bases = LayerPoints.none
    /// The packet's own layer, as a `LayerPoint`.
    var layer: UInt8 = 0

    /// Picture ID of VP8 and VP9, or the dependency descriptor's frame number.
    var pictureID: UInt16 = 0
    var pictureIDOffset: UInt16 = 0
    var tl0PictureIndex: UInt8 = 0
    var tl0PictureIndexOffset: UInt16 = 0
    /// Bytes at the start of the payload that hold the fields to rewrite.
    var descriptorLength: UInt16 = 0
    /// Offset of a RED packet's primary block in the payload; 0 for other packets.
    var primaryOffset: UInt16 = 0

    var audioLevel = Element()
    var videoOrientation = Element()
    var absoluteCaptureTime = Element()
    var dependencyDescriptor = Element()
    /// Parsed but not forwarded: subscribers are sent other layers than it describes.
    var layersAllocation = Element()

    /// Bytes of RTP padding that lie after the payload in the pool, and may be sent along.
    var padding: UInt8 = 0
    /// Pool index of the publication's next packet in this batch; -1 at the end.
    var next = OptionalIndex<HandleKind.Packet>()
    /// Reason why no subscriber has been sent it; `nil` once one has.
    var drop: DropReason? = .noSubscriber
}
