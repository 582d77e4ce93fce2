/// Kind of media: audio or video.
public enum StreamKind: String, Codable, Hashable, Sendable, CaseIterable { case audio, video }

/// Source of a stream or of an m-line's media.
public enum StreamSource: String, Codable, Hashable, Sendable, CaseIterable {
    case camera, microphone, screen
}

/// Codec names on the IPC.
public enum CodecName: String, Codable, Hashable, Sendable, CaseIterable {
    case opus, red, vp8, vp9, h264, av1
}

/// A stream as results and events describe it.
public struct StreamInfo: Codable, Hashable, Sendable {
    public var stream: StreamID
    public var participant: ParticipantID
    /// `camera` (also with audio beside it), `microphone` (audio alone) or `screen`.
    public var source: StreamSource
    public var audio: AudioInfo?
    public var video: VideoInfo?
    /// Unix time, in seconds.
    public var created: Double

    public init(
        stream: StreamID,
        participant: ParticipantID,
        source: StreamSource,
        audio: AudioInfo? = nil,
        video: VideoInfo? = nil,
        created: Double
    ) {
        self.stream = stream
        self.participant = participant
        self.source = source
        self.audio = audio
        self.video = video
        self.created = created
    }
}

/// A stream's audio.
public struct AudioInfo: Codable, Hashable, Sendable {
    /// Codec of the last received packet; before the first, the negotiated one.
    public var codec: CodecName
    /// Whether the publisher has it switched on.
    public var enabled: Bool

    public init(codec: CodecName, enabled: Bool = true) {
        self.codec = codec
        self.enabled = enabled
    }
}

/// A stream's video.
public struct VideoInfo: Codable, Hashable, Sendable {
    /// Codec of the last received packet; before the first, the negotiated one.
    public var codec: CodecName
    /// Whether the publisher has it switched on.
    public var enabled: Bool
    public var layers: [LayerInfo]

    public init(codec: CodecName, enabled: Bool = true, layers: [LayerInfo] = []) {
        self.codec = codec
        self.enabled = enabled
        self.layers = layers
    }
}

/// Last measured properties of one encoding of a video.
public struct LayerInfo: Codable, Hashable, Sendable {
    /// `nil` without simulcast.
    public var rid: String?
    /// Pixels; 0 while unknown.
    public var width: Int
    public var height: Int
    /// Frames a second.
    public var frameRate: Double
    /// Bits a second.
    public var bitrate: Int
    public var active: Bool

    public init(
        rid: String?,
        width: Int,
        height: Int,
        frameRate: Double,
        bitrate: Int,
        active: Bool
    ) {
        self.rid = rid
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.bitrate = bitrate
        self.active = active
    }
}

/// Returns a room's streams.
public enum StreamList: IPCMethod {
    public static let name = "stream.list"
    public typealias Params = RoomOnly

    public struct Result: Codable, Hashable, Sendable {
        public var streams: [StreamInfo]
        public init(streams: [StreamInfo]) { self.streams = streams }
    }
}

/// Reports that the publisher switched its microphone or camera off or on.
public enum StreamUpdate: IPCMethod {
    public static let name = "stream.update"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var stream: StreamID
        public var audio: Bool?
        public var video: Bool?

        public init(room: RoomID, stream: StreamID, audio: Bool? = nil, video: Bool? = nil) {
            self.room = room
            self.stream = stream
            self.audio = audio
            self.video = video
        }
    }
}

/// Ends a stream.
public enum StreamUnpublish: IPCMethod {
    public static let name = "stream.unpublish"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var stream: StreamID
        public var by: ParticipantID?

        public init(room: RoomID, stream: StreamID, by: ParticipantID? = nil) {
            self.room = room
            self.stream = stream
            self.by = by
        }
    }
}
