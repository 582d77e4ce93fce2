import RTP
import WorkerInterface

// A period without faults in which every audio packet must arrive.
extension World {
    private static let listenMilliseconds: Int64 = 2_000
    /// Packets that may be in flight when the period ends.
    private static let underWay: UInt32 = 6

    private struct Pair {
        var viewer: WorldClient
        var publisher: WorldClient
        /// Number of the first packet that counts.
        var first: UInt32
    }

    /// Checks all audio for two seconds; adversaries continue meanwhile.
    func listen() {
        guard violation == nil, hasAdversaries else { return }
        let pairs = hearingPairs()
        for pair in pairs { pair.viewer.beginHearing() }
        run(milliseconds: Self.listenMilliseconds)
        var heard: [Int: [UInt32: Set<UInt32>]] = [:]
        for pair in pairs where heard[pair.viewer.index] == nil {
            heard[pair.viewer.index] = pair.viewer.endHearing()
        }
        for pair in pairs {
            guard let last = pair.publisher.soundSent, last > pair.first + Self.underWay else {
                continue
            }
            let came = heard[pair.viewer.index]?[UInt32(pair.publisher.index)] ?? []
            let lost = (pair.first..<last - Self.underWay).filter { !came.contains($0) }
            tally.listened += Int(last - pair.first)
            guard let first = lost.first else { continue }
            violate(
                .losses,
                "client \(pair.viewer.index) misses \(lost.count) packets of sound of client "
                    + "\(pair.publisher.index), the first \(first)"
            )
        }
    }

    /// Returns honest viewers with the honest publishers that they may hear.
    private func hearingPairs() -> [Pair] {
        halls.filter { $0.isOpen && !$0.isUnknown }.flatMap { hall in
            hall.seats.filter(\.isFree).flatMap { hearingPairs(of: $0, in: hall) }
        }
    }

    private func hearingPairs(of seat: SimulatedParticipant, in hall: SimulatedRoom) -> [Pair] {
        guard let viewer = seat.client, viewer.isConnected else { return [] }
        return seat.subscriptions.compactMap { subscription in
            guard let publisher = clients[Int(subscription.publisher)], !publisher.isGone,
                publisher.isConnected, subscription.kinds.contains(.audio),
                let sender = hall.seats.first(where: { $0.client === publisher }), sender.isFree,
                sender.stream == subscription.stream,
                rights.mayHave(.audio, of: subscription.publisher, viewer),
                let first = publisher.soundSent
            else { return nil }
            return Pair(viewer: viewer, publisher: publisher, first: first + 1)
        }
    }
}

extension WorldClient {
    /// Number of audio packets sent; `nil` if it sends none.
    var soundSent: UInt32? { offer.layers.first { $0.kind == .audio }?.sent }
}
