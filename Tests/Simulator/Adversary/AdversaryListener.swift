import HostilePeer
import JSON
import RTP
import WorkerInterface

// A returning listener: follows, leaves and follows again while packets are still held.
extension World {
    /// Switches its own slots, or a room's pins, there and back.
    func toggleFollowing(_ adversary: Adversary, _ client: WorldClient) {
        guard !isSettling, adversary.seat.hasJoined, !adversary.seat.isUnknown else { return }
        let hall = adversary.hall
        let places = hall.seats.filter { $0.follows && $0.isFree }
        let honest = places.isEmpty ? nil : places[Int(adversary.choice % UInt64(places.count))]
        let seat = adversary.choice >> 16 % 2 == 0 ? honest ?? adversary.seat : adversary.seat
        switch adversary.choice >> 8 % 4 {
        case 0: turnFollowing(seat, in: hall, on: adversary.done % 2 == 0)
        case 1:
            // Both arrive in one round, before any packet is sent.
            turnFollowing(seat, in: hall, on: false)
            turnFollowing(seat, in: hall, on: true)
        case 2: turnPin(adversary, in: hall)
        default:
            turnPin(adversary, in: hall)
            turnFollowing(seat, in: hall, on: adversary.done % 2 == 0)
        }
    }

    private func turnFollowing(_ seat: SimulatedParticipant, in hall: SimulatedRoom, on: Bool) {
        guard let offer = seat.client?.offer else { return }
        let mids = on ? (offer.mids(.audio, of: seat), offer.mids(.video, of: seat)) : ([], [])
        call(
            "talkers.subscribe",
            params(
                hall,
                [
                    "participant": .string(seat.name),
                    "audioMids": .array(mids.0.map { .string($0) }),
                    "videoMids": .array(mids.1.map { .string($0) }),
                ]
            ),
            on: callers.openConnections.first
        )
    }

    /// Pins somebody, or removes the pin.
    private func turnPin(_ adversary: Adversary, in hall: SimulatedRoom) {
        let talkers = hall.seats.filter { $0.isFree && $0.publishes }
        guard !talkers.isEmpty else { return }
        let seat = talkers[Int(adversary.choice >> 24 % UInt64(talkers.count))]
        let names: [String: JSON] = ["participants": [.string(seat.name)]]
        call(
            adversary.done / 2 % 2 == 0 ? "pin.add" : "pin.remove",
            params(hall, names),
            on: callers.openConnections.first
        )
    }
}
