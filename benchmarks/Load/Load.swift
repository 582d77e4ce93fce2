import Foundation
import LoadPeer
import SFU
import SFUClient
import Sockets

/// The load from room to report: what goes over the IPC, with the media in between.
struct Load {
    let options: Options
    let signals: Int32
    private let client: SFUClient
    private let room: RoomID
    private let publisher: ParticipantID = "publisher"

    init(_ options: Options, signals: Int32) {
        self.options = options
        self.signals = signals
        client = SFUClient(path: options.path)
        room = RoomID(options.room)
    }

    /// Runs the load and closes its room, whatever happens.
    func run() async throws -> Report {
        _ = try await client.createRoom(room)
        do {
            let report = try await measure()
            try await client.closeRoom(room)
            return report
        } catch {
            _ = try? await client.closeRoom(room)
            throw error
        }
    }

    private func measure() async throws -> Report {
        let workers = try await client.serverInfo().workers
        let plan = try await negotiate()
        let before = try await client.serverStats().counters
        let tally = try await Self.play(plan)
        let after = try await client.serverStats().counters
        return Report(
            options: options,
            tally: tally,
            before: before,
            after: after,
            workers: workers
        )
    }

    /// Joins everybody and subscribes the viewers, before any media: so all of it is theirs.
    private func negotiate() async throws -> Plan {
        let identity = try DTLSIdentity(profiles: options.profiles)
        // A fragment is unique to a peer, so no two runs may have seeds in common.
        let seed = UInt64.random(in: 1 << 32..<1 << 60) & ~0xffff
        let first = UInt32.random(in: 1...0xffff) << 12
        let sources = PublishedSources(audio: first, video: first + 1, rtx: first + 2)
        let seeds = (0...UInt64(options.viewers)).map { seed + $0 }
        var answers: [Answer] = []
        var stream: StreamID?
        for (index, seed) in seeds.enumerated() {
            let participant = index == 0 ? publisher : ParticipantID("viewer-\(index)")
            _ = try await client.join(.init(room: room, participant: participant))
            let offer = Offer.text(
                seed: seed,
                fingerprint: identity.fingerprint,
                sources: index == 0 ? sources : nil
            )
            let reply = try await client.offer(
                .init(room: room, participant: participant, sdp: offer)
            )
            answers.append(try Answer(reply.sdp))
            if let made = stream {
                _ = try await client.subscribe(
                    .init(room: room, participant: participant, stream: made)
                )
            } else {
                stream = reply.mids.compactMap(\.stream).first
            }
        }
        return Plan(
            options: options,
            identity: identity,
            sources: sources,
            answers: answers,
            seeds: seeds,
            signals: signals
        )
    }

    /// Runs the media loop in a thread of its own, as it blocks.
    private static func play(_ plan: Plan) async throws -> Tally {
        try await withCheckedThrowingContinuation { waiter in
            let thread = Thread { @Sendable in
                do throws(SystemError) {
                    waiter.resume(returning: try MediaLoop.run(plan))
                } catch {
                    waiter.resume(throwing: error)
                }
            }
            thread.name = "media"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }
}
