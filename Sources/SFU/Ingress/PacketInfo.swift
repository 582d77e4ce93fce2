import RTP
import WorkerInterface

/// What ingress found out about one packet in clear, so that nobody parses it twice.
///
/// All offsets count from the packet's first byte; an offset of 0 means "not there".
struct PacketInfo: BitwiseCopyable {
    /// An element that is carried through to subscribers as it is.
    struct Element: BitwiseCopyable {
        var offset: UInt16 = 0
        var length: UInt8 = 0
    }

    struct Flags: OptionSet, BitwiseCopyable {
        let rawValue: UInt8
        static let marker = Self(rawValue: 1)
        /// The first packet of a picture that needs no other.
        static let keyframeStart = Self(rawValue: 2)
        static let longPictureID = Self(rawValue: 4)
        /// Came as a retransmission (RFC 4588).
        static let repaired = Self(rawValue: 8)
        /// Padding only: subscribers' numbering closes over it.
        static let skipped = Self(rawValue: 16)
        /// `pictureID` is the dependency descriptor's frame number.
        static let frameNumbered = Self(rawValue: 32)
        /// Decoders count pictures by `pictureID`: one that is dropped must leave no gap (VP8).
        static let countsPictures = Self(rawValue: 64)
        /// What a lower layer needs is all among what a higher one needs.
        static let nestsLayers = Self(rawValue: 128)
    }

    var arrival = Instant(nanoseconds: 0)
    /// Index of the encoding that it belongs to.
    var encoding: UInt32 = 0
    /// Which numbering of that encoding, unique in the worker.
    var epoch: UInt32 = 0
    var timestamp: UInt32 = 0
    var sequence = SequenceNumber(rawValue: 0)
    /// The sequence number with its wraps counted; never goes back when the sender starts anew.
    var number: Int64 = 0
    var payloadOffset: UInt16 = 0
    var payloadLength: UInt16 = 0
    var payloadType: UInt8 = 0
    var flags: Flags = []

    /// Followers of these layers get it; a stream without layers goes to all.
    var points = LayerPoints.all
    /// For these it is the last packet of a picture: the marker is theirs.
    var marks = LayerPoints.none
    /// With this first packet of a frame one may go over to these, from one of `bases`.
    var switches = LayerPoints.none
    var bases = LayerPoints.none
    /// The layer that it belongs to itself, as a `LayerPoint`.
    var layer: UInt8 = 0

    /// VP8's and VP9's picture id, or the dependency descriptor's frame number.
    var pictureID: UInt16 = 0
    var pictureIDOffset: UInt16 = 0
    var tl0PictureIndex: UInt8 = 0
    var tl0PictureIndexOffset: UInt16 = 0
    /// Bytes at the payload's start that hold what rewriting changes.
    var descriptorLength: UInt16 = 0
    /// Where a RED packet's primary block begins in the payload; 0 for all others.
    var primaryOffset: UInt16 = 0

    var audioLevel = Element()
    var videoOrientation = Element()
    var playoutDelay = Element()
    var absoluteCaptureTime = Element()
    var dependencyDescriptor = Element()
    /// Not carried through: viewers are sent other layers.
    var layersAllocation = Element()

    /// Bytes of RTP padding that lie after the payload in the pool, for who may send it along.
    var padding: UInt8 = 0
    /// The next arrival of the same publication in this batch, as a pool index; -1 at the end.
    var next: Int32 = -1
    /// What becomes of it: `nil` once a subscriber has been sent it.
    var drop: DropReason? = .noSubscriber
}
