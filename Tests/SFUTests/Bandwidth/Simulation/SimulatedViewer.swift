import RTP

/// A browser's receiver: shows complete frames, sends NACKs, keyframe requests and feedback.
struct SimulatedViewer {
    /// A frame that could be shown.
    struct Frame {
        /// Time of display, in nanoseconds.
        var time: Int64
        var width: Int
    }

    private struct Received {
        var isStart = false
        var isEnd = false
        /// Width by a keyframe's first packet.
        var width: Int?
    }

    private static let video: UInt32 = 0xaaaa
    private static let feedbackInterval: Int64 = 100_000_000
    private static let mostAsked = 10
    private static let clockInterval: Int64 = 1_000_000_000
    /// Origin of the viewer's clock: nanoseconds ahead of ours.
    private static let clockOrigin: Int64 = 777_000_000_000
    /// Nanoseconds without a first picture, and without a new one, after which a browser requests a
    /// keyframe.
    private static let firstPatience: Int64 = 200_000_000
    private static let patience: Int64 = 3_000_000_000

    /// Nanoseconds after which a packet is requested again: a round trip and a little more, as soon
    /// as that is known.
    private(set) var askAgain: Int64 = 100_000_000
    private(set) var frames: [Frame] = []
    /// Whether the decoder fails: nothing is shown, and keyframes are requested.
    var isBroken = false
    /// Audio packets: arrival, number, and transit time in excess of the fastest.
    private(set) var sounds: [(time: Int64, number: Int, transit: Int64)] = []

    private var packets: [Int: Received] = [:]
    private var next: Int?
    private var highest = 0
    private var width = 0
    private var asked: [Int: (at: Int64, times: Int)] = [:]
    private var lastShown: Int64?
    private var lastAsked: Int64 = 0
    private var hasStarted = false
    private var firstSound: Int?

    private var arrivals: [Int64] = []
    private var base: Int?
    private var nextFeedback: Int64 = 0
    private var nextClock: Int64 = 0
    private var feedbackCount: UInt8 = 0

    /// Takes a decrypted packet that arrived at `time`.
    mutating func receive(_ packet: [UInt8], at time: Int64) {
        var header = 12
        if packet[0] & 0x10 != 0 {
            let end = 16 + 4 * Int(packet.u16(14))
            noteNumber(packet, 16..<end, at: time)
            header = end
        }
        var end = packet.count
        if packet[0] & 0x20 != 0 { end -= Int(packet[packet.count - 1]) }
        switch packet.ssrc {
        case Self.video:
            take(Int(packet.u16(2)), packet, header..<end, at: time)
        case Self.video + 1:
            guard end - header > 2 else { return }
            take(Int(packet.u16(header)), packet, header + 2..<end, at: time)
        default:
            noteSound(Int(packet.u16(2)), at: time)
        }
    }

    /// Takes a decrypted RTCP datagram: an answer to the viewer's clock tells its round trip.
    mutating func learn(from datagram: [UInt8], at time: Int64) {
        var blocks = RTCPBlocks(datagram.span)
        while let block = blocks.next() {
            guard let answer = try? LastReceiverTime.find(for: SSRC(rawValue: 1), in: block)
            else { continue }
            let trip = clock(at: time).compact &- answer.reference &- answer.delay
            askAgain = (Int64(trip) * 1_000_000_000) >> 16 + 20_000_000
        }
    }

    private func clock(at time: Int64) -> NTPTime {
        NTPTime(unixNanoseconds: time + Self.clockOrigin)
    }

    private mutating func noteSound(_ number: Int, at time: Int64) {
        let first = firstSound ?? number
        firstSound = first
        let count = (number - first) & 0xffff
        sounds.append((time, count, time - Int64(count) * 20_000_000))
    }

    private mutating func noteNumber(_ packet: [UInt8], _ range: Range<Int>, at time: Int64) {
        var place = range.lowerBound
        while place < range.upperBound {
            guard packet[place] != 0 else {
                place += 1
                continue
            }
            let length = Int(packet[place] & 15) + 1
            if packet[place] >> 4 == 7 {
                let first = base ?? Int(packet.u16(place + 1))
                base = first
                let step = Int(Int16(truncatingIfNeeded: Int(packet.u16(place + 1)) - first))
                guard step >= 0 else { return }
                while arrivals.count <= step { arrivals.append(-1) }
                // The receiver's clock has another origin.
                arrivals[step] = time + Self.clockOrigin
            }
            place += 1 + length
        }
    }

    private mutating func take(
        _ number: Int,
        _ packet: [UInt8],
        _ payload: Range<Int>,
        at time: Int64
    ) {
        let reference = next == nil ? number : highest
        let index = reference + Int(Int16(truncatingIfNeeded: number - reference))
        if !hasStarted {
            hasStarted = true
            lastShown = time
        }
        guard payload.count > 6, index >= next ?? index else { return }
        var received = Received(isEnd: packet[1] & 0x80 != 0)
        let frame = payload.lowerBound + 6
        received.isStart = packet[payload.lowerBound] & 0x10 != 0
        if received.isStart, payload.count > 15, packet[frame] & 1 == 0 {
            received.width = Int(packet[frame + 6]) | Int(packet[frame + 7]) << 8
        }
        packets[index] = received
        if next == nil { next = index }
        highest = max(highest, index)
        show(at: time)
    }

    /// Shows all complete frames, and skips missing ones for a complete keyframe.
    private mutating func show(at time: Int64) {
        while let first = next, let frame = whole(from: first) {
            finish(frame, at: time)
        }
        guard let first = next, highest > first else { return }
        for start in first + 1...highest where packets[start]?.width != nil {
            guard let frame = whole(from: start) else { continue }
            for index in first..<start { packets[index] = nil }
            asked = asked.filter { $0.key > start }
            next = start
            finish(frame, at: time)
            return show(at: time)
        }
    }

    private func whole(from start: Int) -> ClosedRange<Int>? {
        guard packets[start]?.isStart == true else { return nil }
        var index = start
        while let packet = packets[index] {
            if packet.isEnd { return start...index }
            index += 1
        }
        return nil
    }

    private mutating func finish(_ frame: ClosedRange<Int>, at time: Int64) {
        if let found = packets[frame.lowerBound]?.width { width = found }
        for index in frame { packets[index] = nil }
        next = frame.upperBound + 1
        guard width > 0, !isBroken else { return }
        frames.append(Frame(time: time, width: width))
        lastShown = time
    }

    /// Returns the RTCP packets that are due.
    mutating func reports(at now: Int64) -> [[UInt8]] {
        var reports: [[UInt8]] = []
        let missing = takeMissing(at: now)
        if !missing.isEmpty {
            reports.append(
                [UInt8](capacity: 1_200) { output in
                    GenericNACK.encode(
                        sender: SSRC(rawValue: 1),
                        media: SSRC(rawValue: Self.video),
                        lost: missing.span,
                        into: &output
                    )
                }
            )
        }
        if mustAskForKeyframe(at: now) {
            let loss = PictureLossIndication(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: Self.video)
            )
            reports.append([UInt8](capacity: 12) { loss.encode(into: &$0) })
        }
        if now >= nextClock {
            nextClock = now + Self.clockInterval
            let clock = ReceiverReferenceTime(sender: SSRC(rawValue: 1), ntp: clock(at: now))
            let size = ReceiverReferenceTime.encodedSize
            reports.append([UInt8](capacity: size) { clock.encode(into: &$0) })
        }
        if now >= nextFeedback {
            nextFeedback = now + Self.feedbackInterval
            while let message = feedback() { reports.append(message) }
        }
        return reports
    }

    private mutating func takeMissing(at now: Int64) -> [SequenceNumber] {
        guard let next, highest > next else { return [] }
        var missing: [SequenceNumber] = []
        for index in next..<highest where packets[index] == nil && missing.count < 100 {
            let before = asked[index] ?? (.min / 2, 0)
            guard now - before.0 >= askAgain, before.1 < Self.mostAsked else { continue }
            asked[index] = (now, before.1 + 1)
            missing.append(SequenceNumber(rawValue: UInt16(truncatingIfNeeded: index)))
        }
        asked = asked.filter { $0.key >= next }
        return missing
    }

    private mutating func mustAskForKeyframe(at now: Int64) -> Bool {
        guard let lastShown else { return false }
        let patience = frames.isEmpty || isBroken ? Self.firstPatience : Self.patience
        // Without any arrivals there is nothing to request.
        guard now - max(lastShown, lastAsked) > patience, !packets.isEmpty else { return false }
        lastAsked = now
        return true
    }

    private mutating func feedback() -> [UInt8]? {
        guard let first = base, !arrivals.isEmpty else { return nil }
        var reported = 0
        let known = arrivals
        let count = feedbackCount
        let start = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: first))
        let bytes = [UInt8](capacity: 1_200) { output in
            reported = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: Self.video),
                feedbackCount: count,
                base: start,
                arrivals: known.span,
                into: &output
            )
        }
        guard reported > 0 else { return nil }
        feedbackCount &+= 1
        base = (first + reported) & 0xffff
        arrivals.removeFirst(reported)
        return bytes
    }
}
