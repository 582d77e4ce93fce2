import Testing

@testable import Daemon
@testable import WorkerInterface

struct CandidatesTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var sockets: [String]
        var announce: [String] = []
        var candidates: [String]
    }

    static let interfaces = [
        Candidates.Interface(address: Address(ipv4: 0x7f00_0001, port: 0), isLoopback: true),
        Candidates.Interface(address: Address(ipv4: 0xc000_0201, port: 0), isLoopback: false),
        Candidates.Interface(address: Address(ipv4: 0xa9fe_0001, port: 0), isLoopback: false),
        Candidates.Interface(address: Address(high: 0, low: 1, port: 0), isLoopback: true),
        Candidates.Interface(
            address: Address(high: 0xfe80 << 48, low: 1, port: 0),
            isLoopback: false
        ),
    ]

    static let cases = [
        Case(
            testDescription: "an address is itself",
            sockets: ["127.0.0.1:7"],
            candidates: ["127.0.0.1:7"]
        ),
        Case(
            testDescription: "the wildcard is every interface but loopback and link-local",
            sockets: ["0.0.0.0:7"],
            candidates: ["192.0.2.1:7"]
        ),
        Case(
            testDescription: "loopback where there is nothing else",
            sockets: ["[::]:7"],
            candidates: ["[::1]:7"]
        ),
        Case(
            testDescription: "announced instead",
            sockets: ["0.0.0.0:7"],
            announce: ["203.0.113.1", "203.0.113.2"],
            candidates: ["203.0.113.1:7", "203.0.113.2:7"]
        ),
        Case(
            testDescription: "announced for its family only",
            sockets: ["127.0.0.1:7", "[::1]:8"],
            announce: ["203.0.113.1"],
            candidates: ["203.0.113.1:7", "[::1]:8"]
        ),
        Case(
            testDescription: "each once",
            sockets: ["192.0.2.1:7", "0.0.0.0:7"],
            candidates: ["192.0.2.1:7"]
        ),
    ]

    @Test(arguments: cases)
    func `candidates are what peers can reach`(_ entry: Case) {
        let candidates = Candidates.addresses(
            of: entry.sockets.compactMap { Address(endpoint: $0) },
            announce: entry.announce.compactMap { Address(text: $0) },
            interfaces: Self.interfaces
        )
        #expect(candidates.map(\.endpointText) == entry.candidates)
    }

    @Test
    func `a machine has loopback`() throws {
        #expect(try Candidates.interfaces().contains { $0.isLoopback })
    }
}
