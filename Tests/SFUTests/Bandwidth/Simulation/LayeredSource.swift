import TestSupport

/// A browser's camera and microphone: three VP8 encodings with three temporal layers, and audio.
///
/// With a ramp, a resumed encoding begins with few bits and every other frame, as Chromium's do,
/// and reaches its rate within that time.
struct LayeredSource {
    /// State of one encoding.
    private struct Layer {
        var ssrc: UInt32
        var rid: String
        var width: UInt16
        /// Target rate, in bits a second.
        var rate: Double
        var sequence: UInt16 = 0
        var rollover: UInt64 = 0
        var picture: UInt16 = 0
        /// Pictures since the last keyframe.
        var age = 0
        var tl0: UInt8 = 0
        /// Excess of the last keyframe, in average frames, that the following frames make up for.
        var debt = 0.0
        /// Time at which the encoder makes a requested keyframe.
        var keyframeAt: Int64?
        var isOn = true
        /// Time at which it was switched on.
        var onSince: Int64
    }

    /// Size of a keyframe in average frames; below, that of a nearly still picture's.
    private static let keyframe = 5.0
    private static let stillKeyframe = 30.0
    private static let repaid = 0.2
    private static let noise = 0.15
    private static let payload = 1_100
    /// Nanoseconds that a request takes to reach the encoder.
    private static let answer: Int64 = 30_000_000
    private static let soundBytes = 60
    /// Share of its rate that a just resumed encoding starts with.
    private static let rampStart = 0.2
    /// Cycle of temporal layers: each frame's share of the average size, and whether it is a sync
    /// frame.
    ///
    /// A sync frame needs the lowest layer alone.
    private static let pattern: [(layer: UInt8, share: Double, isSync: Bool)] = [
        (0, 1.6, false), (2, 0.8, true), (1, 0.8, true), (2, 0.8, false),
    ]

    let framesPerSecond: Int
    /// Nanoseconds in which an encoding reaches its rate.
    let ramp: Int64
    /// Whether the encoder makes no frame; its clock runs on.
    var isStopped = false
    /// Whether the picture is nearly still: frames are small, and nothing makes up for a keyframe.
    let isStill: Bool
    private var frame: UInt32 = 0
    private var layers: [Layer] = []
    private var random: SeededRandom
    private var nextFrame: Int64
    private var nextSound: Int64
    private var sound: UInt16 = 0
    private var soundRollover: UInt64 = 0
    private var transportSequence: UInt16 = 0

    /// Makes a source of encodings with these rates, in bits a second, the lowest first.
    init(
        rates: [Double],
        framesPerSecond: Int,
        rampSeconds: Double = 0,
        isStill: Bool = false,
        at start: Int64,
        seed: UInt64
    ) {
        self.framesPerSecond = framesPerSecond
        ramp = Int64(rampSeconds * 1e9)
        self.isStill = isStill
        random = SeededRandom(seed: seed)
        nextFrame = start
        nextSound = start
        for (index, rate) in rates.enumerated() {
            layers.append(
                Layer(
                    ssrc: 0x5000 + UInt32(index),
                    rid: Self.names[index],
                    width: 320 << UInt16(index),
                    rate: rate,
                    keyframeAt: start,
                    onSince: start
                )
            )
        }
    }

    static let names = ["q", "h", "f"]

    /// Takes a keyframe request from the core.
    mutating func ask(_ ssrc: UInt32, at now: Int64) {
        // libwebrtc makes keyframes of all encodings when one is requested.
        for index in layers.indices where isStill || layers[index].ssrc == ssrc {
            layers[index].keyframeAt = layers[index].keyframeAt ?? now + Self.answer
        }
    }

    /// Pauses and resumes encodings, a bit each; a resumed one begins with a keyframe.
    mutating func send(_ mask: UInt8, at now: Int64) {
        for index in layers.indices {
            let isOn = mask & 1 << UInt8(index) != 0
            if isOn, !layers[index].isOn {
                layers[index].onSince = now
                layers[index].keyframeAt = now
                layers[index].debt = 0
            }
            layers[index].isOn = isOn
        }
    }

    /// Share of its target rate that an encoding has now.
    private func rampShare(of layer: Layer, at now: Int64) -> Double {
        guard ramp > 0 else { return 1 }
        let passed = Double(now - layer.onSince) / Double(ramp)
        return min(1, Self.rampStart + (1 - Self.rampStart) * passed)
    }

    /// Returns the packets that are due, each with its roll-over counter.
    mutating func packets(at now: Int64) -> [(bytes: [UInt8], rollover: UInt64)] {
        var packets: [(bytes: [UInt8], rollover: UInt64)] = []
        if now >= nextSound {
            nextSound += 20_000_000
            packets.append((soundPacket(), soundRollover))
            if sound == 0 { soundRollover += 1 }
        }
        if now >= nextFrame {
            nextFrame += 1_000_000_000 / Int64(framesPerSecond)
            frame &+= 1
            for index in layers.indices where layers[index].isOn && !isStopped {
                let share = rampShare(of: layers[index], at: now)
                if share < 0.5, frame % 2 == 0, layers[index].keyframeAt == nil { continue }
                appendFrame(of: index, share, at: now, to: &packets)
            }
        }
        return packets
    }

    private mutating func soundPacket() -> [UInt8] {
        defer { sound &+= 1 }
        return Media.packet(
            payloadType: 111,
            sequence: sound,
            timestamp: UInt32(sound) &* 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8)), takeNumber()],
            payload: [UInt8](repeating: 7, count: Self.soundBytes)
        )
    }

    private mutating func takeNumber() -> (id: UInt8, data: [UInt8]) {
        transportSequence &+= 1
        return (3, transportSequence.bytes)
    }

    private mutating func appendFrame(
        of index: Int,
        _ ramp: Double,
        at now: Int64,
        to packets: inout [(bytes: [UInt8], rollover: UInt64)]
    ) {
        let isKeyframe = layers[index].keyframeAt.map { $0 <= now } ?? false
        if isKeyframe {
            layers[index].keyframeAt = nil
            layers[index].age = 0
        }
        let part = Self.pattern[layers[index].age % Self.pattern.count]
        if part.layer == 0 { layers[index].tl0 &+= 1 }
        var share = part.share * max(0.3, 1 + Self.noise * random.normal())
        if isKeyframe {
            share = isStill ? Self.stillKeyframe : Self.keyframe
            layers[index].debt += isStill ? 0 : Self.keyframe - 1
        } else {
            let repaid = min(layers[index].debt, Self.repaid)
            layers[index].debt -= repaid
            share -= repaid
        }
        let rate = layers[index].rate * ramp
        var left = max(60, Int(rate / 8 / Double(framesPerSecond) * share))
        var isFirst = true
        while left > 0 {
            let size = min(left, Self.payload)
            left -= size
            packets.append(
                (
                    packet(
                        of: index,
                        size: size,
                        isKeyframe: isKeyframe,
                        isFirst: isFirst,
                        isLast: left == 0
                    ), layers[index].rollover
                )
            )
            layers[index].sequence &+= 1
            if layers[index].sequence == 0 { layers[index].rollover += 1 }
            isFirst = false
        }
        layers[index].age += 1
        layers[index].picture = (layers[index].picture + 1) & 0x7fff
    }

    private mutating func packet(
        of index: Int,
        size: Int,
        isKeyframe: Bool,
        isFirst: Bool,
        isLast: Bool
    ) -> [UInt8] {
        let layer = layers[index]
        let part = Self.pattern[layer.age % Self.pattern.count]
        var payload = Media.vp8Payload(
            pictureID: layer.picture,
            tl0: layer.tl0,
            isKeyframe: isKeyframe,
            startsFrame: isFirst,
            width: layer.width,
            height: layer.width * 9 / 16,
            size: size
        )
        payload[5] = part.layer << 6 | (part.isSync ? 0x20 : 0)
        return Media.packet(
            payloadType: 96,
            sequence: layer.sequence,
            timestamp: frame &* UInt32(90_000 / framesPerSecond),
            ssrc: layer.ssrc,
            marker: isLast,
            elements: [(4, Array("1".utf8)), takeNumber(), (10, Array(layer.rid.utf8))],
            payload: payload
        )
    }
}
