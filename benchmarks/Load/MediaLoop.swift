import CKernel
import Foundation
import LoadPeer
import RTP
import SFU
import Sockets

/// What the loop needs to know before it starts.
struct Plan: Sendable {
    var options: Options
    var identity: DTLSIdentity
    var sources: PublishedSources
    /// The publisher's first, then the viewers'.
    var answers: [Answer]
    /// Of the same peers: what their credentials were made of.
    var seeds: [UInt64]
    /// Tells of SIGINT and SIGTERM.
    var signals: Int32
}

/// All sockets and all media of the load, in one thread; lives on that thread's stack.
struct MediaLoop: ~Copyable {
    private enum Phase: Equatable {
        case connecting, settling, measuring, finishing, draining
        case ended(Tally.End)
    }

    private let plan: Plan
    private let clients: [LoadClient]
    private var poller: Poller
    private var output = Batch(capacity: FrameSizes.maximumPackets + 64)
    private var publisher: Publisher?
    private var viewing: Viewing
    private var tally = Tally()
    private var phase = Phase.connecting
    private var phaseEnd: Instant
    private var nextTick: Instant
    private var nextSecond: Instant
    private var connected = 0
    private let progress = Progress()

    /// Opens the sockets and runs the load to its end, which time sees to.
    static func run(_ plan: Plan) throws(SystemError) -> Tally {
        let context = SRTPContext()
        var clients: [LoadClient] = []
        for (answer, seed) in zip(plan.answers, plan.seeds) {
            clients.append(
                try LoadClient(answer, identity: plan.identity, context: context, seed: seed)
            )
        }
        let poller = try Poller()
        let tokens = clients.indices.map { UInt64($0) } + [signalToken]
        let descriptors = clients.map(\.socket.descriptor) + [plan.signals]
        for (descriptor, token) in zip(descriptors, tokens) {
            try poller.add(descriptor, for: .readable, token: token)
        }
        var loop = Self(plan, clients, poller)
        return loop.run()
    }

    private init(_ plan: Plan, _ clients: [LoadClient], _ poller: consuming Poller) {
        let now = Instant.monotonic()
        self.plan = plan
        self.clients = clients
        self.poller = poller
        viewing = Viewing(everyPacket: plan.options.checks)
        phaseEnd = now.advanced(milliseconds: Self.connectMilliseconds)
        nextTick = now
        nextSecond = now
    }

    private mutating func run() -> Tally {
        var inbox = Inbox()
        connectAll(at: Instant.monotonic())
        while true {
            if case .ended(let end) = phase { return finish(end) }
            let media = publisher?.deadline ?? nextTick
            let wake = min(media, nextTick, phaseEnd)
            let count = poller.wait(until: wake, at: .monotonic())
            for index in 0..<count {
                publish(at: Instant.monotonic())
                let token = poller[index].token
                if token == Self.signalToken {
                    phase = .ended(.interrupted)
                } else {
                    receive(Int(token), through: &inbox)
                }
            }
            let now = Instant.monotonic()
            publish(at: now)
            if nextTick <= now { tick(at: now) }
            advance(at: now)
        }
    }

    private mutating func connectAll(at now: Instant) {
        for (index, client) in clients.enumerated() {
            let answer = plan.answers[index]
            client.peer.connect(
                fragment: answer.fragment,
                password: answer.password,
                fingerprint: answer.fingerprint,
                at: now,
                into: &output
            )
            send(from: client)
        }
    }

    private mutating func send(from client: LoadClient) {
        tally.refusedSends += UInt64(client.socket.send(&output))
    }

    private mutating func publish(at now: Instant) {
        guard let deadline = publisher?.deadline, deadline <= now else { return }
        let client = clients[0]
        publisher?.expire(at: now, &client.peer, into: &output)
        send(from: client)
    }

    /// Timers of the peers, and once a second their reports.
    private mutating func tick(at now: Instant) {
        nextTick = now.advanced(milliseconds: 10)
        for client in clients {
            guard let due = client.peer.deadline, due <= now else { continue }
            client.peer.expire(at: now, into: &output)
            send(from: client)
        }
        guard nextSecond <= now else { return }
        nextSecond = now.advanced(milliseconds: 1_000)
        for client in clients.dropFirst() where client.peer.isConnected {
            client.sendReport(at: now, into: &output)
            send(from: client)
        }
        showProgress()
    }

    private mutating func receive(_ index: Int, through inbox: inout Inbox) {
        let client = clients[index]
        var more = true
        while more {
            more = inbox.receive(from: client.socket) == nil && inbox.count == inbox.capacity
            let now = Instant.monotonic()
            client.queueDrops = max(client.queueDrops, inbox.queueDrops ?? 0)
            for position in 0..<inbox.count {
                take(inbox[position], client, index, at: now)
            }
            send(from: client)
        }
    }

    private mutating func take(
        _ datagram: Span<UInt8>,
        _ client: LoadClient,
        _ index: Int,
        at now: Instant
    ) {
        if index > 0, case .rtp = Datagram(datagram) {
            return client.receiveRTP(datagram, &viewing, at: now, into: &output)
        }
        switch client.peer.receive(datagram, at: now, into: &output) {
        case .connected: connected += 1
        case .failed: phase = .ended(.failed("a DTLS handshake failed"))
        case .undecryptable: tally.undecryptableReports += 1
        case .rtcp(let length):
            index == 0 ? takeFeedback(length) : takeReport(length, client, at: now)
        case .nothing, .rtp: break
        }
    }

    private mutating func takeReport(_ length: Int, _ client: LoadClient, at now: Instant) {
        var count = 0
        client.peer.withDecrypted(length: length) { count = client.receiveReport($0, at: now) }
        tally.senderReports += UInt64(count)
    }

    private mutating func takeFeedback(_ length: Int) {
        guard var publisher else { return }
        let client = clients[0]
        var nacked: [SequenceNumber] = []
        client.peer.withDecrypted(length: length) { publisher.receive(report: $0, &nacked) }
        for number in nacked { publisher.resend(number, &client.peer, into: &output) }
        self.publisher = publisher
    }

    private static let signalToken = UInt64.max
    private static let connectMilliseconds: Int64 = 15_000
    /// What goes before the measured interval, so that it holds no beginning.
    private static let settleMilliseconds: Int64 = 2_000
    /// So much of the media comes whole, that sfud can see what is missing before it.
    private static let finishMilliseconds: Int64 = 200
    /// For what is still under way when the publisher has stopped.
    private static let drainMilliseconds: Int64 = 500
}

// From phase to phase.
extension MediaLoop {
    private mutating func advance(at now: Instant) {
        switch phase {
        case .connecting where connected == clients.count: startPublishing(at: now)
        case .connecting where phaseEnd <= now:
            phase = .ended(.failed("\(connected) of \(clients.count) peers connected in 15 s"))
        case .settling where phaseEnd <= now:
            enter(.measuring, at: now, for: Int64(plan.options.seconds) * 1_000)
            viewing.isMeasuring = true
            tally.before = mark(at: now)
        case .measuring where phaseEnd <= now:
            tally.after = mark(at: now)
            viewing.isMeasuring = false
            enter(.finishing, at: now, for: Self.finishMilliseconds)
            publisher?.stopLosing()
        case .finishing where phaseEnd <= now:
            enter(.draining, at: now, for: Self.drainMilliseconds)
            publisher?.stop()
        case .draining where phaseEnd <= now: phase = .ended(.done)
        case .connecting, .settling, .measuring, .finishing, .draining, .ended: break
        }
    }

    private mutating func enter(_ phase: Phase, at now: Instant, for milliseconds: Int64) {
        self.phase = phase
        phaseEnd = now.advanced(milliseconds: milliseconds)
    }

    private mutating func startPublishing(at now: Instant) {
        let profile = clients[0].peer.profile
        tally.profile = profile?.name ?? "?"
        publisher = Publisher(
            plan.options,
            plan.sources,
            rtpOverhead: profile?.rtpOverhead ?? 0,
            at: now
        )
        enter(.settling, at: now, for: Self.settleMilliseconds)
    }

    private func mark(at now: Instant) -> Tally.Mark {
        Tally.Mark(
            at: now,
            copies: clients.reduce(0) { $0 + $1.received },
            daemonNanoseconds: plan.options.pid.flatMap(ProcessTime.nanoseconds),
            ownNanoseconds: kernel_process_nanoseconds()
        )
    }

    private mutating func finish(_ end: Tally.End) -> Tally {
        progress.clear()
        tally.end = end
        tally.publisher = publisher?.tally ?? tally.publisher
        tally.latency = viewing.latency
        for client in clients.dropFirst() {
            tally.audio += client.audio.tally
            tally.video += client.video.tally
            tally.retransmissions += client.retransmissions
            tally.strangers += client.strangers
        }
        for client in clients { tally.queueDrops += UInt64(client.queueDrops) }
        for client in clients {
            client.peer.close(into: &output)
            send(from: client)
        }
        return tally
    }

    private mutating func showProgress() {
        let seconds = Int(phaseEnd.nanoseconds(since: Instant.monotonic()) / 1_000_000_000)
        switch phase {
        case .connecting: progress.show("connecting: \(connected) of \(clients.count)")
        case .settling: progress.show("settling")
        case .measuring:
            let received = clients.reduce(0) { $0 + $1.received }
            let gaps = clients.reduce(0) { $0 + $1.audio.tally.gaps + $1.video.tally.gaps }
            progress.show("\(seconds) s to go, \(received) packets received, \(gaps) missing")
        case .finishing, .draining, .ended: break
        }
    }
}
