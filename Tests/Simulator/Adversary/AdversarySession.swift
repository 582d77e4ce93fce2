import HostilePeer
import RTP
import TestSupport

// Hostile offers and DTLS records.
extension World {
    private static let mostSlots = 6

    /// Makes another offer with new ICE credentials, sometimes with another slot.
    func makeNewOffer(_ adversary: Adversary, _ client: WorldClient) {
        let (seat, hall) = (adversary.seat, adversary.hall)
        guard !isSettling, !seat.isBusy, !seat.isUnknown, seat.client === client else { return }
        if adversary.random.chance(0.2) {
            client.offer.slots = min(Self.mostSlots, client.offer.slots + 1)
        }
        restart(seat, hall)
    }

    /// Sends a record that its keys did not make, or repeats one of its handshake.
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
