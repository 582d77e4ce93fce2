import RTP
import SFU

struct DTLSIdentity: Sendable { let fingerprint = Fingerprint(algorithm: .sha256, digest: [1]) }
enum SRTPEngine: Sendable { case libsrtp2, ipsecMB }

struct Core: ~Copyable {
    static let batchCapacity = 128
    static let replyCapacity = 16
    var events: [Event] = []
    var statistics = WorkerStatistics()
    init(limits: CoreLimits, seed: UInt64, identity: DTLSIdentity, engine: SRTPEngine) {}
    mutating func receive(
        _ datagram: Span<UInt8>, on path: Path, at now: Instant, into output: inout Batch
    ) {
        statistics.datagramsIn += 1
        output.append(to: path) { out in
            for index in datagram.indices { out.append(datagram[index]) }
        }
    }
    mutating func flush(into output: inout Batch, at now: Instant) -> Bool { false }
    mutating func expire(at now: Instant, into output: inout Batch) {}
    var deadline: Instant? { nil }
    mutating func apply(_ command: Command, at now: Instant, into output: inout Batch) {
        switch command {
        case .report(let token): events.append(.statistics(token: token, statistics))
        case .fence(let epoch): events.append(.fenced(epoch: epoch, at: now, packets: 0))
        default: break
        }
    }
    mutating func takeEvent() -> Event? { events.isEmpty ? nil : events.removeFirst() }
    mutating func setWallClock(offsetNanoseconds: Int64) {}
}
