import RTP
import SFU

struct ControlPlane {
    private var output: [ControlOutput] = []
    init(_ setup: ControlSetup) {}
    mutating func receive(
        _ line: [UInt8], from: ConnectionID, at now: Instant, unixTime: Double
    ) {
        output.append(
            .reply(from, Array(#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601}}"#.utf8)))
    }
    mutating func receive(_ event: Event, from worker: Int, at now: Instant) {}
    mutating func connectionClosed(_ id: ConnectionID) {}
    mutating func expire(at now: Instant) {}
    var deadline: Instant? { nil }
    mutating func shutdown(at now: Instant) { output.append(.exit) }
    mutating func takeOutput() -> [ControlOutput] {
        defer { output = [] }
        return output
    }
    var roomCount: Int { 0 }
    var participantCount: Int { 0 }
}
