import HostilePeer
import RTP

// Offers and DTLS records with a plan.
extension World {
    private static let mostSlots = 6

    /// Offers anew with other ICE credentials, now and then with another slot.
    func offerAnew(_ adversary: Adversary, _ client: WorldClient) {
        let (seat, hall) = (adversary.seat, adversary.hall)
        guard !isSettling, !seat.isBusy, !seat.isUnknown, seat.client === client else { return }
        if adversary.random.chance(0.2) {
            client.offer.slots = min(Self.mostSlots, client.offer.slots + 1)
        }
        restart(seat, hall)
    }

    /// A record that its keys have not made, or one of its handshake once more.
    func sendRecord(_ adversary: Adversary, _ client: WorldClient) {
        let bytes: [UInt8]
        if adversary.random.chance(0.2), let flight = adversary.random.pick(client.flights) {
            bytes = flight
        } else {
            let kind = adversary.random.pick(ForgedRecord.allCases) ?? .garbage
            bytes = kind.bytes(&adversary.values, using: &adversary.random)
        }
        schedule.add(
            .toWorker(client.worker, client.path, bytes),
            at: now.advanced(nanoseconds: 1_000_000)
        )
    }
}
