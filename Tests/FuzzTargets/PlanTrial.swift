import Contract
import HostilePeer
import RTP
import SFU
import TestSupport
import WorkerInterface

/// A participant and a viewer, both with keys, that vary fields of their messages.
///
/// The input is a series of plans of five bytes: a message and its sender, a field of it, a
/// strategy for the field's values, its step, and how often and how fast it is sent. The core's
/// state persists between plans: one plan sends thousands of messages.
struct PlanTrial: ~Copyable {
    /// The message that the plan repeats.
    private enum Message: Equatable {
        case report(ForgedReport)
        case audio, video
        case check
        case record
        case listener
    }

    private var trial = PeerTrial()
    private var random = SeededRandom(seed: 26)
    private var values = FieldValues()
    private var left = Self.messages
    private var number: UInt64 = 0

    /// Messages of one input: enough to overflow any sum of 24 bits of 64 ms.
    private static let messages = 40_000
    /// Time for which packets are held, in milliseconds.
    private static let heldMilliseconds: Int64 = 400

    static func run(_ bytes: [UInt8]) throws(Violation) -> Int {
        var plan = Self()
        plan.trial.answersStrangers = true
        try plan.trial.begin()
        var cursor = Cursor(bytes)
        while !cursor.isAtEnd, plan.left > 0 { try plan.pursue(&cursor) }
        return try plan.trial.finish()
    }

    private mutating func pursue(_ cursor: inout Cursor) throws(Violation) {
        let kind = cursor.byte()
        let message = Self.message(kind & 0x0f)
        let isOfViewer = kind & 0x10 != 0
        let isForged = kind & 0x20 != 0
        play(Self.fields(of: message), cursor.byte(), cursor.byte(), cursor.byte())
        let pace = cursor.byte()
        let milliseconds: Int64 = [0, 1, 10, 100][Int(pace >> 4 & 3)]
        for step in 0..<min(1 << Int(pace & 0x0f), left) {
            left -= 1
            number &+= 1
            notePlainValues()
            try send(message, step, isOfViewer: isOfViewer, isForged: isForged)
            if milliseconds > 0 {
                try trial.pass(milliseconds: milliseconds)
            } else if step % 8 == 7 {
                try trial.settle()
            }
        }
        try trial.settle()
    }

    private static func message(_ number: UInt8) -> Message {
        if let report = ForgedReport(rawValue: number) { return .report(report) }
        switch number {
        case 11: return .audio
        case 12: return .video
        case 13: return .check
        case 14: return .record
        default: return .listener
        }
    }

    private static func fields(of message: Message) -> [WireField] {
        switch message {
        case .report(let report): report.fields
        case .audio, .video: ForgedMedia.fields
        case .check: [.priority, .tieBreaker, .attributeLength]
        case .record: ForgedRecord.fields
        case .listener: []
        }
    }

    private mutating func play(
        _ fields: [WireField],
        _ field: UInt8,
        _ strategy: UInt8,
        _ step: UInt8
    ) {
        values.stop()
        guard !fields.isEmpty, field < 0xff else { return }
        let chosen = fields[Int(field) % fields.count]
        let strategies = ValueStrategy.allCases
        let steps = ValueSource.steps(bits: chosen.bits)
        let source = ValueSource(
            strategies[Int(strategy) % strategies.count],
            bits: chosen.bits,
            step: step & 0x80 == 0 ? steps[Int(step) % steps.count] : UInt64(step & 0x7f),
            from: 0
        )
        values.play(chosen, source)
    }

    private mutating func notePlainValues() {
        values.plain = [
            .ntp: (2_208_988_800 + UInt64(trial.now.nanoseconds / 1_000_000_000)) << 32,
            .rtpTime: number &* 3_000, .baseSequence: number, .statusCount: 1, .arrivalDelta: 4,
            .lostSequence: number, .lostMask: 0xffff, .bitrateMantissa: 1_000,
            .sequence: number, .timestamp: number &* 960, .source: 0x1111, .payloadType: 111,
            .audioLevel: 0x80 | 20, .pictureID: number, .descriptorFlags: 0xc0,
            .descriptorFrame: number, .transportSequence: number,
        ]
    }

    private mutating func send(
        _ message: Message,
        _ step: Int,
        isOfViewer: Bool,
        isForged: Bool
    ) throws(Violation) {
        let own = isOfViewer ? trial.viewer.path : trial.hostile.path
        let path = isForged ? TrialParty.path(9) : own
        switch message {
        case .report(let report):
            let sender: UInt32 = report == .sender ? 0x1111 : 1
            let bytes = report.bytes(from: sender, about: 0xd000, &values, using: &random)
            let datagram =
                isOfViewer
                ? trial.viewer.encryptedRTCP(bytes) : trial.hostile.encryptedRTCP(bytes)
            if let datagram { try trial.receive(datagram, on: path) }
        case .audio, .video:
            if let datagram = trial.hostile.encryptedRTP(media(isVideo: message == .video)) {
                try trial.receive(datagram, on: isForged ? path : trial.hostile.path)
            }
        case .check:
            try trial.receive(check(isOfViewer: isOfViewer), on: path)
        case .record:
            let kinds = ForgedRecord.allCases
            let kind = kinds[step % kinds.count]
            try trial.receive(kind.bytes(&values, using: &random), on: path)
        case .listener: try turn(step)
        }
    }

    private mutating func media(isVideo: Bool) -> [UInt8] {
        var media = ForgedMedia()
        media.extensions = TrialMedia.forgedExtensions
        media.isVideo = isVideo
        media.isKeyframe = number % 16 == 0
        media.mid = isVideo ? "1" : "0"
        if isVideo {
            values.plain[.payloadType] = 96
            values.plain[.source] = 0x2222
        }
        return media.bytes(mark: [1, 2, 3, 4], &values, using: &random)
    }

    private mutating func check(isOfViewer: Bool) -> [UInt8] {
        let ice = isOfViewer ? trial.viewer.configuration.ice : trial.hostile.configuration.ice
        return ForgedCheck().bytes(
            username: "\(ice.localFragment):\(ice.remoteFragment)",
            password: ice.localPassword,
            transaction: number,
            &values,
            using: &random
        )
    }

    /// Switches the viewer's audio slot to the held audio and away from it again.
    private mutating func turn(_ step: Int) throws(Violation) {
        var binding = TrialMedia.binding(to: 0)
        binding.from = trial.now.advanced(milliseconds: -Self.heldMilliseconds)
        try trial.apply(.bind(TrialMedia.slots[0].id, step % 2 == 0 ? nil : binding))
    }
}
