import CCounting
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A worker with one room: everybody has a microphone on, some talk, and the slots of all carry
/// those of the talkers who are on the list.
struct RoomBench: ~Copyable {
    /// One participant's side of the wire.
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
    /// In which order packets come, the same each time.
    private var order: [Int] = []
    private(set) var packets = 0
    private(set) var copies = 0
    /// CPU time of the core, in nanoseconds.
    private(set) var nanoseconds: Int64 = 0
    /// Nanoseconds a packet and copy of the cheapest 20 ms: what others do to the caches hardly
    /// counts.
    private(set) var least = Double.infinity
    /// Speech that was heard to begin.
    private(set) var starts = 0
    /// Of the heap, that a participant takes in the core, with transport, keys and slots.
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
        // Memory that is there from the first on is no participant's own.
        for index in 0..<min(size, Self.firsts) { connect(index, options) }
        counting_start()
        for index in min(size, Self.firsts)..<size { connect(index, options) }
        let bytes = counting_stop().bytes
        participantBytes = size > Self.firsts ? bytes / Int64(size - Self.firsts) : 0
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

    /// Has the slots of one carry the last who began to talk, but not itself.
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

    /// Lets everybody send the sound of 20 ms, spread over that time; `sent` is their side of the
    /// wire.
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

    /// All that is measured; valgrind knows it by its name.
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

    /// Places on the list of talkers, and slots of each who follows it.
    private static let places = 6
    /// Participants before the heap is looked at.
    private static let firsts = 10
}
