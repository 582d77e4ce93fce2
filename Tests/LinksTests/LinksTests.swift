import CKernel
import Glibc
import Kernel
import Links
import Nodes
import RTP
import Sockets
import Testing
import WorkerInterface

/// Links over TCP on loopback.
@Suite struct LinksTests {
    /// A node's links with their poller.
    struct End: ~Copyable {
        let name: NodeName
        var poller: Poller
        var links: Links
        var news: [LinkNews] = []

        init(_ name: String) throws {
            let name = try #require(NodeName(rawValue: name))
            let address = try #require(Address(endpoint: "127.0.0.1:0"))
            let links = Links(try TCPListener.open(address), try LinkIdentity(), own: name)
            let poller = try Poller()
            try poller.add(links.descriptor, for: .readable, token: 0)
            self.name = name
            self.links = links
            self.poller = poller
        }

        /// Serves what is ready, for a few milliseconds.
        mutating func turn() {
            var now = Instant.monotonic()
            let count = poller.wait(until: now.advanced(milliseconds: 2), at: now)
            now = .monotonic()
            for index in 0..<count {
                let ready = poller[index]
                if ready.token == 0 {
                    links.accept(with: poller, { $0 }, at: now)
                } else {
                    links.serve(ready.token, ready, at: now)
                }
            }
            links.expire(with: poller, { $0 }, at: now)
            links.flush(with: poller) { $0 }
            news += links.takeNews()
        }

        var ups: Int { news.count { if case .up = $0 { true } else { false } } }

        var messages: [LinkMessage] {
            news.compactMap { news in
                switch news {
                case .message(_, .ping), .message(_, .pong): nil
                case .message(_, let message): message
                case .up, .keys, .down, .refused, .roundTrip: nil
                }
            }
        }
    }

    private func trust(_ left: inout End, _ right: inout End) {
        left.links.trust([right.links.fingerprint: right.name])
        right.links.trust([left.links.fingerprint: left.name])
    }

    /// Lets both take turns until a condition holds, for 5 s at most.
    private func turn(
        _ left: inout End,
        _ right: inout End,
        until condition: (borrowing End, borrowing End) -> Bool
    ) -> Bool {
        let end = Instant.monotonic().advanced(milliseconds: 5_000)
        while Instant.monotonic() < end {
            left.turn()
            right.turn()
            if condition(left, right) { return true }
        }
        return false
    }

    @Test func `messages of all sizes pass both ways, and the round trip is measured`() throws {
        var a = try End("a")
        var b = try End("b")
        trust(&a, &b)
        a.links.connect(to: b.name, at: b.links.address, b.links.fingerprint)
        let isUp = turn(&a, &b) { $0.ups == 1 && $1.ups == 1 }
        #expect(isUp)
        let sizes = [0, 1, 16_383, 16_384, 16_385, 1 << 20, 3 << 20]
        let sent = sizes.map { size in
            LinkMessage.reply(number: UInt64(size), line: [UInt8](repeating: 7, count: size))
        }
        for message in sent {
            a.links.send(message, to: b.name)
            b.links.send(message, to: a.name)
        }
        let arrived = turn(&a, &b) {
            $0.messages.count == sent.count && $1.messages.count == sent.count
        }
        #expect(arrived)
        let (atA, atB) = (a.messages, b.messages)
        #expect(atA == sent && atB == sent)
        let isMeasured = turn(&a, &b) { left, _ in
            left.news.contains { if case .roundTrip = $0 { true } else { false } }
        }
        #expect(isMeasured)
    }

    @Test func `of two connections made at once one stays`() throws {
        var a = try End("a")
        var b = try End("b")
        trust(&a, &b)
        a.links.connect(to: b.name, at: b.links.address, b.links.fingerprint)
        b.links.connect(to: a.name, at: a.links.address, a.links.fingerprint)
        _ = turn(&a, &b) { $0.ups > 0 && $1.ups > 0 }
        for _ in 0..<20 {
            a.turn()
            b.turn()
        }
        a.links.send(.closed(connection: 1), to: b.name)
        b.links.send(.closed(connection: 2), to: a.name)
        let arrived = turn(&a, &b) { !$0.messages.isEmpty && !$1.messages.isEmpty }
        #expect(arrived)
        let strangers = a.links.strangers + b.links.strangers
        #expect(strangers == 0)
    }

    @Test func `a node that the registry does not know is turned away`() throws {
        var a = try End("a")
        var b = try End("b")
        // b knows nobody.
        a.links.trust([b.links.fingerprint: b.name])
        a.links.connect(to: b.name, at: b.links.address, b.links.fingerprint)
        let isRefused = turn(&a, &b) { left, right in
            right.links.strangers == 1 && left.news.last == .down(right.name)
        }
        #expect(isRefused)
        let ups = b.ups
        #expect(ups == 0)
    }

    @Test func `a node with another certificate than its record is not linked`() throws {
        var a = try End("a")
        var b = try End("b")
        trust(&a, &b)
        let other = try LinkIdentity()
        a.links.connect(to: b.name, at: b.links.address, other.fingerprint)
        let isRefused = turn(&a, &b) { left, right in left.news.last == .down(right.name) }
        #expect(isRefused)
        let ups = a.ups
        #expect(ups == 0)
    }

    @Test func `who is trusted no longer is cut off`() throws {
        var a = try End("a")
        var b = try End("b")
        trust(&a, &b)
        a.links.connect(to: b.name, at: b.links.address, b.links.fingerprint)
        _ = turn(&a, &b) { $0.ups == 1 && $1.ups == 1 }
        b.links.trust([:])
        let isDown = turn(&a, &b) { left, right in
            left.news.contains(.down(right.name)) && right.news.contains(.down(left.name))
        }
        #expect(isDown)
    }

    @Test func `a port where nobody listens is reported as such`() throws {
        var a = try End("a")
        var b = try End("b")
        a.links.connect(to: b.name, at: "127.0.0.1:1", b.links.fingerprint)
        let isTold = turn(&a, &b) { left, _ in left.news.count > 1 }
        #expect(isTold)
        let news = a.news
        #expect(news == [.refused(b.name), .down(b.name)])
    }
}
