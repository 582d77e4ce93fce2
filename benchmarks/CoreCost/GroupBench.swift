import CCounting
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A worker with small rooms in which everybody has a camera and sees all others.
///
/// Each batch holds what one client has sent at a time: an audio packet, or a frame of each layer.
/// Time passes, so the cost includes the timers of the transports.
struct GroupBench: ~Copyable {
    /// One participant's client.
    private final class Client {
        var peer: LoadPeer
        var voice: RoomMedia.Voice
        var audioSequence: UInt64 = 1
        var videoSequence: UInt64 = 100

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
    private let people: Int
    private let layers: Int
    private let together: Int
    private let packetsOfFrame: Int
    private var frame: [UInt8]
    private(set) var packets = 0
    private(set) var copies = 0
    /// CPU time of the core, in nanoseconds.
    private(set) var nanoseconds: Int64 = 0

    // Everybody is connected, and has received a keyframe, before anything is measured.
    init(_ options: Options) throws {
        identity = try DTLSIdentity(profiles: [options.profile])
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        people = options.people
        layers = options.layers
        together = options.together
        packetsOfFrame = min(options.burst, Core.batchCapacity / (together * layers))
        frame = BenchMedia.keyframePacket()
        let context = SRTPContext(engine: options.engine)
        for index in 0..<people * options.rooms {
            let peer = LoadPeer(
                identity: identity,
                context: context,
                path: BenchMedia.path(index),
                seed: UInt64(index + 1)
            )
            let voice = RoomMedia.Voice(index: index, talks: true, kind: .levels)
            clients.append(Client(peer, voice))
        }
        for index in clients.indices {
            let media = [RoomMedia.publication(index, levels: true), video(index)]
            let slots = places(of: index)
            Bench.connect(&clients[index].peer, index, identity, media, slots, &core, now)
        }
        for index in clients.indices { watch(index) }
        counting_instructions_start()
        var sent = Batch(capacity: Core.batchCapacity)
        for first in stride(from: 0, to: clients.count, by: together) {
            prepareFrames(of: first, into: &sent)
            deliver(sent)
        }
        frame[26] |= 1
        while core.takeEvent() != nil {}
    }

    /// Cameras follow the microphones in the numbers of the publications.
    private func video(_ index: Int) -> PublicationConfiguration {
        var video = BenchMedia.publication(clients.count + index)
        video.mid = "1"
        video.encodings = (0..<layers).map {
            let rid = layers > 1 ? ["l", "m", "h"][$0] : nil
            return EncodingConfiguration(rid: rid, ssrc: ssrc(index, layer: $0))
        }
        return video
    }

    private func ssrc(_ index: Int, layer: Int) -> SSRC {
        SSRC(rawValue: 0x4000 + UInt32(index) * 4 + UInt32(layer))
    }

    /// The participants that one sees, and the number of its first slot.
    private func seen(by index: Int) -> [Int] {
        let room = index / people * people
        return (room..<room + people).filter { $0 != index }
    }

    private func places(of index: Int) -> [SlotConfiguration] {
        let first = index * 2 * (people - 1)
        return seen(by: index).indices.flatMap { position in
            let number = first + 2 * position
            var video = BenchMedia.slot(number + 1)
            video.mid = "\(2 * position + 3)"
            return [RoomMedia.slot(number, "\(2 * position + 2)"), video]
        }
    }

    private mutating func watch(_ index: Int) {
        let slots = places(of: index)
        for (position, other) in seen(by: index).enumerated() {
            let publications = [other, clients.count + other]
            for (slot, number) in zip(slots[(2 * position)...], publications) {
                let publication = PublicationID(index: UInt32(number), generation: 1)
                let binding = Binding(publication: publication, subscription: 1, open: true)
                core.apply(.bind(slot.id, binding), at: now, into: &output)
                output.removeAll()
            }
        }
        for number in [index, clients.count + index] {
            let publication = PublicationID(index: UInt32(number), generation: 1)
            core.apply(.gate(publication, open: true), at: now, into: &output)
            output.removeAll()
        }
    }

    /// Sends 100 ms of everybody's media: five packets of audio, and three frames.
    ///
    /// `sent` holds the clients' datagrams.
    mutating func tick(through sent: inout Batch) {
        for step in 0..<8 {
            for first in stride(from: 0, to: clients.count, by: together) {
                counting_pause()
                if [1, 4, 7].contains(step) {
                    prepareFrames(of: first, into: &sent)
                } else {
                    prepareAudio(of: first, into: &sent)
                }
                counting_resume()
                let start = threadNanoseconds()
                deliver(sent)
                nanoseconds += threadNanoseconds() - start
                packets += sent.count
                let steps = 8 * Int64((clients.count + together - 1) / together)
                now = now.advanced(nanoseconds: 100_000_000 / steps)
                counting_pause()
                while core.takeEvent() != nil {}
                counting_resume()
            }
        }
    }

    /// Does all the measured work; `Scripts/gate` identifies it by its name.
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
        // Timers are no packets: they may allocate.
        counting_pause()
        while core.expire(at: now, into: &output) {}
        counting_resume()
        output.removeAll()
    }

    private func prepareAudio(of first: Int, into sent: inout Batch) {
        sent.removeAll()
        for index in first..<min(first + together, clients.count) {
            let client = clients[index]
            let packet = client.voice.next(sequence: client.audioSequence)
            client.peer.sendRTP(packet.span, index: client.audioSequence, into: &sent)
            client.audioSequence += 1
        }
    }

    /// Queues a frame of each layer, whose later packets are one byte longer.
    private mutating func prepareFrames(of first: Int, into sent: inout Batch) {
        sent.removeAll()
        for index in first..<min(first + together, clients.count) {
            let client = clients[index]
            for position in 0..<packetsOfFrame {
                client.videoSequence += 1
                let number = client.videoSequence
                frame[2] = UInt8(truncatingIfNeeded: number >> 8)
                frame[3] = UInt8(truncatingIfNeeded: number)
                for layer in 0..<layers {
                    var packet = frame
                    if 2 * position < packetsOfFrame { packet.removeLast() }
                    let name = ssrc(index, layer: layer).rawValue
                    packet[10] = UInt8(truncatingIfNeeded: name >> 8)
                    packet[11] = UInt8(truncatingIfNeeded: name)
                    client.peer.sendRTP(packet.span, index: number, into: &sent)
                }
            }
        }
    }
}

/// Cost of forwarding in small rooms, through the core and its timers.
enum GroupCost {
    /// Warms up, measures, and prints; returns whether nothing forbidden was counted.
    static func report(_ options: Options) throws -> Bool {
        var bench = try GroupBench(options)
        var sent = Batch(capacity: Core.batchCapacity)
        for _ in 0..<5 { bench.tick(through: &sent) }
        let (start, packets, copies) = (bench.nanoseconds, bench.packets, bench.copies)
        counting_start()
        for _ in 0..<options.packets { bench.tick(through: &sent) }
        let calls = counting_stop()
        counting_instructions_stop()
        let each = (bench.nanoseconds - start) / Int64(max(1, bench.copies - copies))
        print(
            """
            \(options.rooms) rooms of \(options.people) with cameras of \(options.layers) layers, \
            \(options.together) clients a batch, \(options.profile.name) by \
            \(options.engine.rawValue)
            packets received    \(bench.packets - packets)
            forwarded copies    \(bench.copies - copies)
            with the warm-up    \(bench.copies)
            ns a copy           \(each)
            allocations         \(calls.allocations)
            frees               \(calls.frees)
            retains             \(calls.retains)
            releases            \(calls.releases)
            exclusivity checks  \(calls.exclusivity_checks)
            mutex locks         \(calls.locks)
            """
        )
        return calls.retains + calls.releases + calls.exclusivity_checks == 0
    }
}
