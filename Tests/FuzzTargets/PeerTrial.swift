import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A hostile participant with valid keys, and a viewer that watches it.
///
/// Its packets are encrypted with its keys, so they pass decryption. The input is a series of
/// steps: a byte that names the step, followed by the step's data.
struct PeerTrial: ~Copyable {
    var core: Core
    private(set) var now = Instant(nanoseconds: 1_000_000_000_000)
    private var output = Batch(capacity: 256)
    var hostile: TrialParty
    var viewer: TrialParty
    private var sum = 0
    /// Whether unvalidated sources may be answered: checks arrive from spoofed addresses.
    var answersStrangers = false

    /// Most timer expirations at one instant; more means a timer that is always due.
    private static let spinLimit = 200
    private static let settleMilliseconds: Int64 = 3_000

    static func run(_ bytes: [UInt8]) throws(Violation) -> Int {
        var trial = Self()
        try trial.begin()
        var cursor = Cursor(bytes)
        while !cursor.isAtEnd { try trial.step(&cursor) }
        return try trial.finish()
    }

    init() {
        var limits = CoreLimits()
        limits.packetPool = 1_024
        core = Core(
            limits: limits,
            seed: 1,
            identity: TrialParty.identity,
            engine: .libsrtp2
        )
        core.setWallClock(offsetNanoseconds: 1_700_000_000_000_000_000)
        hostile = TrialParty(0, TrialMedia.publications, TrialMedia.ownSlots)
        viewer = TrialParty(1, [], TrialMedia.slots)
    }

    /// Connects both; the viewer subscribes to everything, and the sender to its own video.
    mutating func begin() throws(Violation) {
        try connect(hostile.id, hostile.configuration, hostile.takeCheck(at: now), hostile.path)
        try connect(viewer.id, viewer.configuration, viewer.takeCheck(at: now), viewer.path)
        for (index, slot) in TrialMedia.slots.enumerated() {
            try apply(.bind(slot.id, TrialMedia.binding(to: index)))
        }
        try apply(.bind(TrialMedia.ownSlots[0].id, TrialMedia.binding(to: 1)))
    }

    /// Runs ICE over the wire; skips the handshake and installs its keys.
    private mutating func connect(
        _ id: TransportID,
        _ configuration: TransportConfiguration,
        _ check: [UInt8],
        _ path: Path
    ) throws(Violation) {
        try apply(.configure(id, configuration))
        core.receive(check.span, on: path, at: now, into: &output)
        let keys = TrialParty.keys(of: Int(id.index), role: .server)
        let isConnected = core.connectUnasked(
            id,
            profile: TrialParty.profile,
            keys: keys,
            at: now,
            into: &output
        )
        guard isConnected else { throw Violation("no connection") }
    }

    private mutating func step(_ cursor: inout Cursor) throws(Violation) {
        try makeRoom()
        let kind = cursor.byte()
        switch kind & 7 {
        case 0, 1, 2:
            if let datagram = hostile.encryptedRTP(cursor.chunk()) {
                core.receive(datagram.span, on: hostile.path, at: now, into: &output)
            }
        case 3:
            if let datagram = hostile.encryptedRTCP(cursor.chunk()) {
                core.receive(datagram.span, on: hostile.path, at: now, into: &output)
            }
        case 4:
            if let datagram = viewer.encryptedRTCP(cursor.chunk()) {
                core.receive(datagram.span, on: viewer.path, at: now, into: &output)
            }
        case 5:
            let path = kind & 8 != 0 ? hostile.path : TrialParty.path(9)
            let datagram = cursor.chunk()
            core.receive(datagram.span, on: path, at: now, into: &output)
        case 6: return try pass(milliseconds: 1 + 4 * Int64(cursor.byte()))
        default: return try apply(TrialMedia.command(cursor.byte(), hostile, viewer))
        }
        // One batch may hold several packets.
        if kind & 0x80 == 0 { try settle() }
    }

    /// Drains the core's output when more might not fit.
    private mutating func makeRoom() throws(Violation) {
        if output.free < Core.replyCapacity { try settle() }
    }

    /// Gives the core a datagram.
    mutating func receive(_ datagram: [UInt8], on path: Path) throws(Violation) {
        try makeRoom()
        core.receive(datagram.span, on: path, at: now, into: &output)
    }

    mutating func apply(_ command: WorkerCommand) throws(Violation) {
        core.apply(command, at: now, into: &output)
        try settle()
    }

    /// Advances the clock and runs all timers that fall due.
    mutating func pass(milliseconds: Int64) throws(Violation) {
        let end = now.advanced(milliseconds: milliseconds)
        var spins = 0
        while true {
            while core.expire(at: now, into: &output) {}
            try settle()
            // Once both have left, no timer is due any more.
            let due = core.deadline ?? end.advanced(milliseconds: 1)
            if due > now {
                guard now < end else { return }
                now = min(due, end)
                spins = 0
            } else {
                spins += 1
                guard spins < Self.spinLimit else { throw Violation("a timer stays due") }
            }
        }
    }

    /// Drains the core's output and inspects it as its receiver would.
    mutating func settle() throws(Violation) {
        var more = true
        while more {
            more = core.flush(into: &output, at: now)
            for index in 0..<output.count {
                sum &+= 1
                let datagram = output[index].indices.map { output[index][$0] }
                if output.path(at: index) == viewer.path {
                    try viewer.inspect(datagram)
                } else if output.path(at: index) == hostile.path {
                    try hostile.inspect(datagram)
                } else {
                    try inspectStrange(datagram)
                }
            }
            output.removeAll()
        }
        while core.takeEvent() != nil { sum &+= 1 }
    }

    /// Checks a datagram to an unvalidated source: answers and checks are allowed, media never.
    private func inspectStrange(_ datagram: [UInt8]) throws(Violation) {
        guard answersStrangers else { throw Violation("a stranger is sent something") }
        switch Datagram(datagram.span) {
        case .stun, .dtls: break
        case .rtp, .rtcp, nil: throw Violation("a stranger is sent media")
        }
    }

    /// Checks that every packet is accounted for and nothing of the two peers is left.
    mutating func finish() throws(Violation) -> Int {
        try pass(milliseconds: Self.settleMilliseconds)
        let statistics = core.report(at: now)
        guard statistics.accountsForAll else { throw Violation("packets are not accounted for") }
        try apply(.close(hostile.id))
        try apply(.close(viewer.id))
        try pass(milliseconds: Self.settleMilliseconds)
        guard core.leakedObjects.isEmpty else {
            throw Violation("peers that have gone leave \(core.leakedObjects)")
        }
        return sum &+ Int(truncatingIfNeeded: statistics.rtpForwarded &* 31 &+ statistics.bytesIn)
    }
}

extension WorkerStatistics {
    /// Whether every received packet was either forwarded or counted as dropped.
    fileprivate var accountsForAll: Bool {
        let reasons = DropReason.allCases.filter { !$0.isOutgoing }
        let dropped = { (isMedia: Bool) -> UInt64 in
            reasons.filter { ($0.index >= DropReason.malformedRTP.index) == isMedia }
                .reduce(UInt64(0)) { $0 + drops[$1.index] }
        }
        return rtpIn == rtpForwarded + dropped(true)
            && datagramsIn == stunIn + dtlsIn + rtcpIn + rtpIn + dropped(false)
    }
}
