package import RTP
package import WorkerInterface

/// Settings of a live stream's encoder and output.
package struct StreamSettings: Hashable, Sendable {
    /// URL of the server; secret, so it is kept only in memory and in the pipe.
    package var url: String
    /// Path of a PEM file of CA certificates trusted for the server; empty uses the system's.
    package var authority: String
    /// Width in pixels; even.
    package var width: Int
    package var height: Int
    /// Video bitrate in bits a second.
    package var bitrate: Int
    /// Seconds for which an unreachable server is retried.
    package var retrySeconds: Int
    /// Whether the server has accepted the stream before, so that retries are useful from the
    /// start.
    package var hasBeenUp: Bool

    package init(
        url: String,
        width: Int,
        height: Int,
        bitrate: Int,
        retrySeconds: Int,
        hasBeenUp: Bool,
        authority: String = ""
    ) {
        self.url = url
        self.authority = authority
        self.hasBeenUp = hasBeenUp
        self.width = width
        self.height = height
        self.bitrate = bitrate
        self.retrySeconds = retrySeconds
    }
}

/// Frame of a track for the encoding process.
package struct StreamFrame: Hashable, Sendable {
    /// Number of the track; never reused within the stream.
    package var track: UInt32
    package var codec: Codec
    package var isKeyframe: Bool
    /// Capture time on the machine's monotonic clock.
    package var instant: Instant
    /// Decoder configuration; set for keyframes and all audio.
    package var configuration: [UInt8]?
    package var bytes: [UInt8]

    package init(
        track: UInt32,
        codec: Codec,
        isKeyframe: Bool,
        instant: Instant,
        configuration: [UInt8]?,
        bytes: [UInt8]
    ) {
        self.track = track
        self.codec = codec
        self.isKeyframe = isKeyframe
        self.instant = instant
        self.configuration = configuration
        self.bytes = bytes
    }
}

/// Message from the daemon to the encoding process.
package enum StreamMessage: Hashable, Sendable {
    /// Always and only the first message.
    case begin(StreamSettings)
    /// Tracks whose pictures are shown, in the order of their tiles.
    case tiles([UInt32])
    case frame(StreamFrame)
    /// The track has ended; its last picture may stay until another replaces it.
    case leave(UInt32)
    /// The pictures and audio received of this track must no longer be played.
    case forget(UInt32)
    /// Ends the stream properly at the server.
    case end
}

/// Report from the encoding process to the daemon.
package enum StreamReport: Hashable, Sendable {
    /// The server has accepted the first packet, or accepts packets again.
    case up
    /// The connection is lost, and is retried.
    case down(cause: String)
    /// The stream has ended by itself.
    case ended(reason: String)
    /// A track needs a keyframe to continue.
    case keyframeWanted(UInt32)
    /// Parts of the sandbox that this system lacks; reported once, at the beginning.
    case unconfined(parts: [String])
}

/// Wire format of messages and reports; each is preceded by its length in four bytes.
package enum StreamWireFormat {
    /// Largest message in bytes; above the size of any frame.
    package static let byteLimit = 1 << 24

    /// Encodes a message, with its length in front.
    package static func encoded(_ message: StreamMessage) -> [UInt8] {
        var writer = StreamWriter()
        switch message {
        case .begin(let settings):
            writer.put(1, bytes: 1)
            for number in [
                settings.width, settings.height, settings.bitrate, settings.retrySeconds,
                settings.hasBeenUp ? 1 : 0,
            ] {
                writer.put(number, bytes: 4)
            }
            writer.put(settings.url.utf8.count, bytes: 4)
            writer.put(text: settings.url)
            writer.put(text: settings.authority)
        case .tiles(let tracks):
            writer.put(2, bytes: 1)
            for track in tracks { writer.put(Int(track), bytes: 4) }
        case .frame(let frame):
            writer.put(3, bytes: 1)
            writer.put(Int(frame.track), bytes: 4)
            writer.put(Int(frame.codec.rawValue), bytes: 1)
            writer.put(frame.isKeyframe ? 1 : 0, bytes: 1)
            writer.put(Int(frame.instant.nanoseconds), bytes: 8)
            writer.put(frame.configuration.map { $0.count + 1 } ?? 0, bytes: 4)
            writer.bytes += frame.configuration ?? []
            writer.bytes += frame.bytes
        case .leave(let track):
            writer.put(4, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .forget(let track):
            writer.put(5, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .end: writer.put(6, bytes: 1)
        }
        return writer.finished()
    }

    /// Encodes a report, with its length in front.
    package static func encoded(_ report: StreamReport) -> [UInt8] {
        var writer = StreamWriter()
        switch report {
        case .up: writer.put(1, bytes: 1)
        case .down(let cause):
            writer.put(2, bytes: 1)
            writer.put(text: cause)
        case .ended(let reason):
            writer.put(3, bytes: 1)
            writer.put(text: reason)
        case .keyframeWanted(let track):
            writer.put(4, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .unconfined(let parts):
            writer.put(5, bytes: 1)
            writer.put(text: parts.joined(separator: ","))
        }
        return writer.finished()
    }

    /// Decodes a message; returns `nil` if it is invalid.
    package static func message(_ body: [UInt8]) -> StreamMessage? {
        var reader = StreamReader(body)
        switch reader.take(bytes: 1) {
        case 1:
            guard let width = reader.take(bytes: 4), let height = reader.take(bytes: 4),
                let bitrate = reader.take(bytes: 4), let retry = reader.take(bytes: 4),
                let hasBeenUp = reader.take(bytes: 4), let length = reader.take(bytes: 4),
                let url = reader.take(count: length)
            else { return nil }
            return .begin(
                StreamSettings(
                    url: String(decoding: url, as: UTF8.self),
                    width: width,
                    height: height,
                    bitrate: bitrate,
                    retrySeconds: retry,
                    hasBeenUp: hasBeenUp == 1,
                    authority: reader.text()
                )
            )
        case 2:
            var tracks: [UInt32] = []
            while let track = reader.take(bytes: 4) { tracks.append(UInt32(track)) }
            return .tiles(tracks)
        case 3: return frame(&reader)
        case 4: return reader.take(bytes: 4).map { .leave(UInt32($0)) }
        case 5: return reader.take(bytes: 4).map { .forget(UInt32($0)) }
        case 6: return .end
        default: return nil
        }
    }

    private static func frame(_ reader: inout StreamReader) -> StreamMessage? {
        guard let track = reader.take(bytes: 4),
            let codec = reader.take(bytes: 1).flatMap({ Codec(rawValue: UInt8($0)) }),
            let isKeyframe = reader.take(bytes: 1), let time = reader.take(bytes: 8),
            let count = reader.take(bytes: 4),
            let configuration = reader.take(count: max(0, count - 1))
        else { return nil }
        return .frame(
            StreamFrame(
                track: UInt32(track),
                codec: codec,
                isKeyframe: isKeyframe == 1,
                instant: Instant(nanoseconds: Int64(time)),
                configuration: count == 0 ? nil : configuration,
                bytes: reader.rest()
            )
        )
    }

    /// Decodes a report; returns `nil` if it is invalid.
    ///
    /// It comes from a process that has decoded untrusted media, and is passed to clients and the
    /// log, so causes are restricted to single words.
    package static func report(_ body: [UInt8]) -> StreamReport? {
        var reader = StreamReader(body)
        switch reader.take(bytes: 1) {
        case 1: return .up
        case 2: return word(reader.text()).map { .down(cause: $0) }
        case 3: return word(reader.text()).map { .ended(reason: $0) }
        case 4: return reader.take(bytes: 4).map { .keyframeWanted(UInt32($0)) }
        case 5:
            let parts = reader.text().split(separator: ",").compactMap { word(String($0)) }
            return .unconfined(parts: Array(parts.prefix(8)))
        default: return nil
        }
    }

    /// Returns the text if it has 1 to 32 lowercase letters and hyphens.
    private static func word(_ text: String) -> String? {
        let isWord = text.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d }
        return isWord && (1...32).contains(text.utf8.count) ? text : nil
    }
}

/// Splitter of a byte stream into messages.
package struct StreamDeframer {
    private var bytes: [UInt8] = []
    private var start = 0
    /// Whether a length exceeded `StreamWireFormat.byteLimit`, so that the stream is unreadable.
    package private(set) var isBroken = false

    package init() {}

    /// Adds received bytes.
    package mutating func append(_ more: ArraySlice<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// Returns the next complete message, without its length.
    package mutating func next() -> [UInt8]? {
        guard !isBroken, bytes.count - start >= 4 else { return nil }
        let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= StreamWireFormat.byteLimit else {
            isBroken = true
            return nil
        }
        guard bytes.count - start - 4 >= length else { return nil }
        defer { start += 4 + length }
        return Array(bytes[start + 4..<start + 4 + length])
    }
}

/// Writer of big-endian numbers, with the length in front.
private struct StreamWriter {
    var bytes: [UInt8] = [0, 0, 0, 0]

    mutating func put(_ number: Int, bytes count: Int) {
        for shift in stride(from: 8 * (count - 1), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    mutating func put(text: String) { bytes += text.utf8 }

    func finished() -> [UInt8] {
        var whole = bytes
        let length = whole.count - 4
        for index in 0..<4 { whole[index] = UInt8(truncatingIfNeeded: length >> (24 - 8 * index)) }
        return whole
    }
}

private struct StreamReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(bytes count: Int) -> Int? {
        guard bytes.count - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
    }

    mutating func take(count: Int) -> [UInt8]? {
        guard count <= bytes.count - position else { return nil }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    mutating func rest() -> [UInt8] {
        defer { position = bytes.count }
        return Array(bytes[position...])
    }

    mutating func text() -> String { String(decoding: rest(), as: UTF8.self) }
}
