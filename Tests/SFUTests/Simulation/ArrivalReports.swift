import RTP

@testable import SFU

/// A viewer's transport-wide feedback.
struct ArrivalReports {
    private static let numberID = Media.viewerExtensions[.transportSequenceNumber]

    let peer: Int
    /// Increase of the transit time from packet to packet in nanoseconds: a path that fills up.
    var slowdown: Int64 = 0
    private var delay: Int64 = 0
    private var seen = 0
    /// First number of the next report.
    private var next: UInt16?
    private var messages: UInt8 = 0

    init(of peer: Int) { self.peer = peer }

    /// Reports all packets since the last report, missing ones too, as if they had arrived evenly.
    mutating func report(in call: inout Call) {
        let fresh = call.peers[peer].received.dropFirst(seen)
        seen = call.peers[peer].received.count
        let numbers = fresh.compactMap { Self.number(of: $0) }
        guard let first = numbers.first else { return }
        // Packets between two reports belong to the second one.
        let base = next ?? first
        let count = numbers.reduce(0) { max($0, Int(Int16(bitPattern: $1 &- base))) } + 1
        var arrivals = [Int64](repeating: -1, count: count)
        for number in numbers {
            let place = Int(Int16(bitPattern: number &- base))
            guard place >= 0 else { continue }
            delay += slowdown
            arrivals[place] = call.now.nanoseconds + delay + Int64(place) * 1_000
        }
        next = base &+ UInt16(count)
        messages &+= 1
        let number = messages
        call.sendRTCP(from: peer) { output in
            _ = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: number,
                base: SequenceNumber(rawValue: base),
                arrivals: arrivals.span,
                into: &output
            )
        }
    }

    private static func number(of bytes: [UInt8]) -> UInt16? {
        guard let packet = try? Packet(bytes.span) else { return nil }
        var elements = packet.extensions
        while let element = elements.next() {
            guard element.id == numberID, element.length == 2 else { continue }
            return bytes.u16(element.offset)
        }
        return nil
    }
}
