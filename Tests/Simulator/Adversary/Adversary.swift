import HostilePeer
import JSON
import RTP
import SFU
import TestSupport
import WorkerInterface

/// A hostile participant with valid keys that pursues one goal after the other, and keeps state.
///
/// Its link is perfect, so that everything it sends arrives. It takes no part in the honest
/// participants' actions, and none of the room's guarantees apply to it.
package final class Adversary {
    let hall: SimulatedRoom
    var seat: SimulatedParticipant
    var random: SeededRandom
    private(set) var plan = AdversaryPlan.clockSteps
    private var pace = AdversaryPlan.Pace(messages: 0, burst: 1, milliseconds: 50)
    /// Remaining messages of the plan.
    private(set) var left = 0
    /// Messages of the plan sent so far.
    private(set) var done = 0
    /// The only plan that it pursues, if just one is tried.
    let only: AdversaryPlan?

    /// Varied fields.
    var values = FieldValues()
    /// A victim's address that requested nothing.
    var victim: Path
    /// A number whose meaning depends on the plan: a direction, a block, a participant.
    var choice: UInt64 = 0
    /// Highest sent index of each of its own SSRCs (RFC 3711 §3.3.1).
    private var highest: [UInt32: UInt64] = [:]
    private var lastMark: UInt32 = 0
    private var lastTransaction: UInt64 = 0

    private static let sourceLimit = 4_096

    init(seat: SimulatedParticipant, hall: SimulatedRoom, seed: UInt64, only: AdversaryPlan?) {
        self.seat = seat
        self.hall = hall
        self.only = only
        random = SeededRandom(seed: seed)
        victim = Self.stranger(UInt32(truncatingIfNeeded: seed))
    }

    var milliseconds: Int64 { pace.milliseconds }
    var burst: Int { pace.burst }

    /// Switches to the next plan.
    func turn() {
        plan = only ?? random.pick(AdversaryPlan.allCases) ?? .clockSteps
        pace = plan.pace(using: &random)
        left = pace.messages
        done = 0
        values = FieldValues()
        choice = random.next()
        victim = Self.stranger(UInt32(truncatingIfNeeded: random.next()))
    }

    func countMessage() {
        left -= 1
        done += 1
    }

    /// Abandons the plan.
    func abandon() { left = 0 }

    /// Varies some of the fields; the others keep their plain values.
    func play(_ fields: [WireField]) {
        values.stop()
        guard !fields.isEmpty else { return }
        for _ in 0..<random.pick(1...3) {
            guard let field = random.pick(fields) else { continue }
            values.play(field, using: &random)
        }
    }

    /// Returns the index of a packet with this number: the nearest to the highest sent one.
    func index(of number: UInt16, source: UInt32) -> UInt64 {
        if highest.count > Self.sourceLimit { highest = [:] }
        var index = UInt64(number)
        if let newest = highest[source] {
            let step = Int16(bitPattern: number &- UInt16(truncatingIfNeeded: newest))
            let nearest = Int64(newest) + Int64(step)
            index = UInt64(nearest < 0 ? nearest + 0x1_0000 : nearest)
        }
        highest[source] = max(index, highest[source] ?? 0)
        return index
    }

    func nextTransaction() -> UInt64 {
        lastTransaction += 1
        return lastTransaction
    }

    /// Returns the end of a payload: a mark of a layer that none of its honest packets has.
    func nextMark(of client: WorldClient, _ kind: MediaKind) -> [UInt8] {
        lastMark += 1
        return MediaMark(
            room: client.room,
            publisher: UInt32(client.index),
            kind: kind,
            number: lastMark,
            layer: Self.layer
        ).bytes
    }

    static let layer: UInt8 = 99

    /// Returns the numbered address of a network that nobody uses (RFC 2544).
    static func stranger(_ number: UInt32) -> Path {
        Path(
            remote: Address(
                ipv4: strangers | number & 0x1_ffff,
                port: 20_000 + UInt16(number >> 20)
            ),
            local: 0
        )
    }

    static func isStranger(_ path: Path) -> Bool {
        path.remote.ipv4.map { $0 & 0xfffe_0000 == strangers } ?? false
    }

    private static let strangers: UInt32 = 198 << 24 | 18 << 16
}

// Its actions in a room.
extension World {
    /// Adds an adversary to a room that has none.
    func addAdversary(_ hall: SimulatedRoom) {
        guard hasAdversaries, hall.isOpen, !hall.isUnknown else { return }
        if let adversary = hall.adversary, hall.seats.contains(where: { $0 === adversary.seat }) {
            return
        }
        lastSeat += 1
        let seat = SimulatedParticipant(adversary: lastSeat)
        hall.seats.append(seat)
        rights.follow(seat.number)
        if let adversary = hall.adversary {
            adversary.seat = seat
        } else {
            let seed = adversaryRandom.next()
            let adversary = Adversary(seat: seat, hall: hall, seed: seed, only: onlyPlan)
            hall.adversary = adversary
            after(milliseconds: 50) { [unowned self] in step(adversary) }
        }
        if hall.isLecture { rights.close(.floor(publisher: seat.number)) }
        ask(
            "participant.join",
            ["participant": .string(seat.name)],
            about: seat,
            in: hall
        ) { [unowned self] result in
            guard result != nil else { return }
            seat.hasJoined = true
            connect(seat, in: hall)
        }
    }

    /// Performs the plan's next step, until the room ends.
    private func step(_ adversary: Adversary) {
        guard adversary.hall.isOpen, halls.contains(where: { $0 === adversary.hall }) else {
            return
        }
        if let client = adversary.seat.client, client.isConnected, !client.isGone {
            if adversary.left <= 0 {
                client.isStill = false
                client.isDeaf = false
                adversary.turn()
                watchAll(adversary.seat, in: adversary.hall)
                prepare(adversary, client)
                tell("\(adversary.seat.name) means to \(adversary.plan.text)")
            }
            for _ in 0..<adversary.burst where adversary.left > 0 {
                adversary.countMessage()
                tally.hostile += 1
                pursue(adversary, client)
            }
        }
        after(milliseconds: adversary.milliseconds) { [unowned self] in step(adversary) }
    }

    private func prepare(_ adversary: Adversary, _ client: WorldClient) {
        switch adversary.plan {
        case .clockSteps, .feedbackFields, .reportFields, .clocksApart, .requests, .reportFlood:
            prepareReports(adversary, client)
        case .mediaFields, .newSources: prepareMedia(adversary, client)
        case .checkFields: adversary.play([.priority, .tieBreaker, .attributeLength])
        case .records: adversary.play(ForgedRecord.fields)
        case .silentNomination: client.isStill = true
        case .absentReceiver: client.isDeaf = true
        case .spoofedNomination, .othersAddress, .manyAddresses, .offers, .toggleFollowing: break
        }
    }

    private func pursue(_ adversary: Adversary, _ client: WorldClient) {
        switch adversary.plan {
        case .clockSteps, .feedbackFields, .reportFields, .clocksApart, .requests, .reportFlood:
            sendReports(adversary, client)
        case .mediaFields, .newSources: sendMedia(adversary, client)
        case .spoofedNomination: spoof(adversary, client)
        case .silentNomination: keepSilent(adversary, client)
        // Its own messages from there keep the transport alive.
        case .absentReceiver: break
        case .othersAddress: impersonate(adversary, client)
        case .manyAddresses: scatter(adversary, client)
        case .checkFields: sendCheck(adversary, client)
        case .offers: makeNewOffer(adversary, client)
        case .records: sendRecord(adversary, client)
        case .toggleFollowing: toggleFollowing(adversary, client)
        }
    }

    /// Sends the output of `write` from the client's own address or from a spoofed one.
    func send(
        from client: WorldClient,
        as source: Path? = nil,
        _ write: (inout Batch) -> Void
    ) {
        write(&sent)
        guard let source else { return sendAll(from: client) }
        for position in 0..<sent.count {
            spoof(sent.bytes(at: position), from: source, to: client.worker)
        }
        sent.removeAll()
    }

    func spoof(_ bytes: [UInt8], from source: Path, to worker: Int) {
        consent.noteForged(bytes.count, from: source)
        schedule.add(
            .toWorker(worker, source, bytes),
            at: now.advanced(nanoseconds: 1_000_000)
        )
    }
}
