public import JSON

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
    public var name: String?
    /// Object that the signalling server attached to the stream.
    public var custom: JSON
    /// Whether the publisher lets its video be switched off to keep the audio.
    public var audioFallback: Bool
    public var audio: AudioInfo?
    public var video: VideoInfo?
    /// Unix time, in seconds.
    public var created: Double

    public init(
        stream: StreamID,
        participant: ParticipantID,
        source: StreamSource,
        name: String? = nil,
        custom: JSON = [:],
        audioFallback: Bool = true,
        audio: AudioInfo? = nil,
        video: VideoInfo? = nil,
        created: Double
    ) {
        self.stream = stream
        self.participant = participant
        self.source = source
        self.name = name
        self.custom = custom
        self.audioFallback = audioFallback
        self.audio = audio
        self.video = video
        self.created = created
    }
}

/// A stream's audio.
public struct AudioInfo: Codable, Hashable, Sendable {
    /// Codec of the last received packet; before the first, the negotiated one.
    public var codec: CodecName
    /// Whether the publisher has it switched on and no moderator has muted it.
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
    /// Whether the publisher has it switched on and no moderator has muted it.
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

    public struct Params: PagedParams {
        public var room: RoomID
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(room: RoomID, limit: PageLimit? = nil, after: PageCursor? = nil) {
            self.room = room
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var streams: [StreamInfo]
        public var next: PageCursor?

        public init(streams: [StreamInfo], next: PageCursor? = nil) {
            self.streams = streams
            self.next = next
        }

        public var page: [StreamInfo] { streams }
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
        public var by: ParticipantID?

        public init(
            room: RoomID,
            stream: StreamID,
            audio: Bool? = nil,
            video: Bool? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.stream = stream
            self.audio = audio
            self.video = video
            self.by = by
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
