import CCounting
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A worker with one audio room in which some participants talk.
///
/// All microphones are on, and the slots of all participants carry the active speakers.
struct RoomBench: ~Copyable {
    /// One participant's client.
    private final class Client {
        var peer: LoadPeer
        var voice: RoomMedia.Voice
        var sequence: UInt64 = 1

        init(_ peer: consuming LoadPeer, _ voice: RoomMedia.Voice) {
            self.peer = peer
            self.voice = voice
        }
    }

    private var core: Core
    private var clients: [Client] = []
    private var output = Batch(capacity: 256)
    private var now = Instant(nanoseconds: 1_000_000_000)
    private let identity: DTLSIdentity
    private let burst: Int
    /// Order in which the participants' packets arrive, the same in each round.
    private var order: [Int] = []
    private(set) var packets = 0
    private(set) var copies = 0
    /// CPU time of the core, in nanoseconds.
    private(set) var nanoseconds: Int64 = 0
    /// Nanoseconds a packet or copy in the fastest 20 ms, the least affected by disturbances.
    private(set) var least = Double.infinity
    /// Detected starts of speech.
    private(set) var starts = 0
    /// Heap bytes of a participant in the core, with transport, keys and slots.
    private(set) var participantBytes: Int64 = 0

    // All `size` participants are connected before anything is measured.
    init(size: Int, _ options: Options) throws {
        identity = try DTLSIdentity(profiles: [options.profile])
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        burst = min(options.burst, Core.batchCapacity)
        order = RoomMedia.shuffled(size)
        let context = SRTPContext(engine: options.engine)
        let talkers = min(options.talkers, size)
        for index in 0..<size {
            let peer = LoadPeer(
                identity: identity,
                context: context,
                path: BenchMedia.path(index),
                seed: UInt64(index + 1)
            )
            let voice = RoomMedia.Voice(
                index: index,
                talks: index < talkers,
                kind: options.isRealOpus ? .opus : .levels
            )
            clients.append(Client(peer, voice))
        }
        // The first participants are not counted, because they trigger one-time allocations.
        for index in 0..<min(size, Self.uncountedParticipants) { connect(index, options) }
        counting_start()
        for index in min(size, Self.uncountedParticipants)..<size { connect(index, options) }
        let bytes = counting_stop().bytes
        participantBytes =
            size > Self.uncountedParticipants ? bytes / Int64(size - Self.uncountedParticipants) : 0
        for index in 0..<size { watch(index, listed: min(talkers, Self.places)) }
        while core.takeEvent() != nil {}
    }

    private mutating func connect(_ index: Int, _ options: Options) {
        let slots = (0..<Self.places).map { RoomMedia.slot(index * Self.places + $0, "\($0 + 1)") }
        Bench.connect(
            &clients[index].peer,
            index,
            identity,
            [RoomMedia.publication(index, levels: !options.isRealOpus)],
            slots,
            &core,
            now
        )
    }

    /// Binds the slots of one participant to the active speakers other than itself.
    private mutating func watch(_ index: Int, listed: Int) {
        let others = (0...listed).filter { $0 != index }.prefix(listed)
        for (position, talker) in others.enumerated() where talker < clients.count {
            let publication = PublicationID(index: UInt32(talker), generation: 1)
            let binding = Binding(publication: publication, subscription: 1, open: true)
            let slot = SlotID(index: UInt32(index * Self.places + position), generation: 1)
            core.apply(.bind(slot, binding), at: now, into: &output)
        }
        output.removeAll()
    }

    /// Sends 20 ms of everybody's audio, spread over that time.
    ///
    /// `sent` holds the clients' datagrams.
    mutating func tick(through sent: inout Batch) {
        let batches = (order.count + burst - 1) / burst
        let before = (nanoseconds, packets + copies)
        for batch in 0..<batches {
            prepare(batch * burst..<min(order.count, (batch + 1) * burst), into: &sent)
            let start = threadNanoseconds()
            deliver(sent)
            nanoseconds += threadNanoseconds() - start
            packets += sent.count
            now = now.advanced(nanoseconds: 20_000_000 / Int64(batches))
            while let event = core.takeEvent() {
                if case .speech(_, .began) = event { starts += 1 }
            }
        }
        let done = packets + copies - before.1
        least = min(least, Double(nanoseconds - before.0) / Double(max(1, done)))
    }

    /// Does all the measured work; valgrind identifies it by its name.
    @inline(never)
    private mutating func deliver(_ sent: borrowing Batch) {
        for index in 0..<sent.count {
            core.receive(sent[index], on: sent.path(at: index), at: now, into: &output)
        }
        output.removeAll()
        var more = true
        while more {
            more = core.flush(into: &output, at: now)
            copies += output.count
            output.removeAll()
        }
        while core.expire(at: now, into: &output) {}
        output.removeAll()
    }

    private func prepare(_ range: Range<Int>, into sent: inout Batch) {
        sent.removeAll()
        for position in range {
            let client = clients[order[position]]
            let packet = client.voice.next(sequence: client.sequence)
            client.peer.sendRTP(packet.span, index: client.sequence, into: &sent)
            client.sequence += 1
        }
    }

    /// Size of the active-speaker list, and slots of each participant that follows it.
    private static let places = 6
    /// Participants connected before the heap is measured.
    private static let uncountedParticipants = 10
}
