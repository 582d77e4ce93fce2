/// Media that a role may send, with upper bounds.
///
/// The bounds beside `audio`, `video` and `screen` are those of a camera; `video` may repeat them
/// as an object, whose members then count.
public struct PublishRights: Codable, Hashable, Sendable {
    public var audio: AudioRight
    public var video: VideoRight
    /// Right to send a screen and its audio; the bounds are those of its video.
    public var screen: VideoRight
    /// Whether videos may come in several encodings (RFC 8853); `true` by default.
    public var simulcast: Bool?
    /// Pixels; larger layers are not forwarded.
    public var maxWidth: Int?
    public var maxHeight: Int?
    /// Frames a second.
    public var maxFrameRate: Double?
    /// Bits a second.
    public var maxBitrate: Int?

    public init(
        audio: AudioRight = false,
        video: VideoRight = false,
        screen: VideoRight = false
    ) {
        self.audio = audio
        self.video = video
        self.screen = screen
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        audio = try container.decodeIfPresent(AudioRight.self, forKey: .audio) ?? false
        video = try container.decodeIfPresent(VideoRight.self, forKey: .video) ?? false
        screen = try container.decodeIfPresent(VideoRight.self, forKey: .screen) ?? false
        simulcast = try container.decodeIfPresent(Bool.self, forKey: .simulcast)
        maxWidth = try container.integer(in: Limits.pixels, .maxWidth)
        maxHeight = try container.integer(in: Limits.pixels, .maxHeight)
        maxFrameRate = try container.number(in: Limits.frameRate, .maxFrameRate)
        maxBitrate = try container.integer(in: Limits.bitrate, .maxBitrate)
    }

    /// Right to send a camera, with its bounds from both places.
    public var camera: VideoRight {
        var camera = video
        camera.maxWidth = video.maxWidth ?? maxWidth
        camera.maxHeight = video.maxHeight ?? maxHeight
        camera.maxFrameRate = video.maxFrameRate ?? maxFrameRate
        camera.maxBitrate = video.maxBitrate ?? maxBitrate
        return camera
    }
}

/// Right to send a microphone: `true`, `false`, or an object with its bound.
public struct AudioRight: Codable, Hashable, Sendable, ExpressibleByBooleanLiteral {
    public var isGranted: Bool
    /// Bits a second of the encoder.
    public var maxBitrate: Int?

    public init(_ isGranted: Bool, maxBitrate: Int? = nil) {
        self.isGranted = isGranted
        self.maxBitrate = maxBitrate
    }

    public init(booleanLiteral value: Bool) { self.init(value) }

    private enum CodingKeys: CodingKey { case maxBitrate }

    /// The object that stands for a right with bounds.
    struct Bounds: Decodable {
        /// Bits a second of the encoder.
        var maxBitrate: Int?

        private enum CodingKeys: CodingKey { case maxBitrate }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            maxBitrate = try container.integer(in: Limits.bitrate, .maxBitrate)
        }
    }

    public init(from decoder: any Decoder) throws {
        if let isGranted = try? decoder.singleValueContainer().decode(Bool.self) {
            self.init(isGranted)
        } else {
            self.init(true, maxBitrate: try Bounds(from: decoder).maxBitrate)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        guard isGranted, maxBitrate != nil else {
            var container = encoder.singleValueContainer()
            return try container.encode(isGranted)
        }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(maxBitrate, forKey: .maxBitrate)
    }
}

/// Right to send a camera or a screen: `true`, `false`, or an object with its bounds.
public struct VideoRight: Codable, Hashable, Sendable, ExpressibleByBooleanLiteral {
    public var isGranted: Bool
    /// Pixels; larger layers are not forwarded.
    public var maxWidth: Int?
    public var maxHeight: Int?
    /// Frames a second.
    public var maxFrameRate: Double?
    /// Bits a second.
    public var maxBitrate: Int?

    public init(_ isGranted: Bool) { self.isGranted = isGranted }

    public init(booleanLiteral value: Bool) { self.init(value) }

    private enum CodingKeys: CodingKey { case maxWidth, maxHeight, maxFrameRate, maxBitrate }

    /// The object that stands for a right with bounds.
    struct Bounds: Decodable {
        /// Pixels; larger layers are not forwarded.
        var maxWidth: Int?
        var maxHeight: Int?
        /// Frames a second.
        var maxFrameRate: Double?
        /// Bits a second.
        var maxBitrate: Int?

        private enum CodingKeys: CodingKey { case maxWidth, maxHeight, maxFrameRate, maxBitrate }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            maxWidth = try container.integer(in: Limits.pixels, .maxWidth)
            maxHeight = try container.integer(in: Limits.pixels, .maxHeight)
            maxFrameRate = try container.number(in: Limits.frameRate, .maxFrameRate)
            maxBitrate = try container.integer(in: Limits.bitrate, .maxBitrate)
        }
    }

    public init(from decoder: any Decoder) throws {
        if let isGranted = try? decoder.singleValueContainer().decode(Bool.self) {
            self.init(isGranted)
            return
        }
        self.init(true)
        let bounds = try Bounds(from: decoder)
        maxWidth = bounds.maxWidth
        maxHeight = bounds.maxHeight
        maxFrameRate = bounds.maxFrameRate
        maxBitrate = bounds.maxBitrate
    }

    public func encode(to encoder: any Encoder) throws {
        guard isGranted, self != true else {
            var container = encoder.singleValueContainer()
            return try container.encode(isGranted)
        }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(maxWidth, forKey: .maxWidth)
        try container.encodeIfPresent(maxHeight, forKey: .maxHeight)
        try container.encodeIfPresent(maxFrameRate, forKey: .maxFrameRate)
        try container.encodeIfPresent(maxBitrate, forKey: .maxBitrate)
    }
}
