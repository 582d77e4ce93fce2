import Foundation
import RTP
import Synchronization
import Testing

@testable import SFU
@testable import WorkerInterface

/// The ring between two workers, in isolation.
struct RelayRingTests {
    private static let target = PublicationID(index: 3, generation: 9)

    private static func message(_ number: Int, length: Int) -> RelayMessage {
        var message = RelayMessage(.packet, to: target, from: target, position: number & 3)
        message.length = UInt16(length)
        message.info.number = Int64(number)
        return message
    }

    /// Makes contents with the message's number in every byte.
    private static func packet(_ number: Int) -> [UInt8] {
        Array(repeating: UInt8(truncatingIfNeeded: number), count: 1 + number * 37 % 1_472)
    }

    /// Writes one message; returns `false` where the ring was full.
    private static func write(_ number: Int, into port: inout RelayPort, to other: Int) -> Bool {
        let bytes = packet(number)
        return port.write(message(number, length: bytes.count), bytes.span, to: other)
    }

    /// Whether the oldest message has this number, to the last byte.
    private static func checkNext(_ number: Int, of port: inout RelayPort, from: Int) -> Bool {
        guard !port[reader: from].isEmpty() else { return false }
        let found = port[reader: from].message
        var bytes = [UInt8](repeating: 0, count: RelayRing.maximumLength)
        var output = bytes.mutableSpan
        port[reader: from].copyPacket(length: Int(found.length), into: &output)
        return found.info.number == Int64(number) && found.position == UInt8(number & 3)
            && found.target == target && Array(bytes.prefix(Int(found.length))) == packet(number)
    }

    @Test func `messages come out in order, and none before it is published`() throws {
        let mesh = RelayMesh(workers: 2)
        var first = mesh.port(of: 0)
        var second = mesh.port(of: 1)
        for number in 0..<10 {
            #expect(Self.write(number, into: &first, to: 1))
        }
        let early = second.hasMessages()
        let published = first.publish(to: 1)
        let again = first.publish(to: 1)
        #expect(!early && published && !again)
        for number in 0..<10 {
            let isRight = Self.checkNext(number, of: &second, from: 0)
            try #require(isRight)
            second[reader: 0].advance()
        }
        let late = second.hasMessages()
        #expect(!late)
    }

    @Test func `a full ring takes no more until its reader has released places`() {
        let mesh = RelayMesh(workers: 3)
        var first = mesh.port(of: 0)
        var second = mesh.port(of: 2)
        for number in 0..<RelayRing.capacity { _ = Self.write(number, into: &first, to: 2) }
        let overfull = Self.write(0, into: &first, to: 2)
        let elsewhere = Self.write(0, into: &first, to: 1)
        _ = first.publish(to: 2)
        let hasMessages = second.hasMessages()
        #expect(!overfull && elsewhere && hasMessages)
        second[reader: 0].advance()
        let unreleased = Self.write(0, into: &first, to: 2)
        second[reader: 0].release()
        let released = Self.write(RelayRing.capacity, into: &first, to: 2)
        let full = Self.write(0, into: &first, to: 2)
        #expect(!unreleased && released && !full)
    }

    /// One end of a ring, used on its own thread.
    private final class End: @unchecked Sendable {
        var port: RelayPort
        var count = 0
        var isRight = true

        init(_ port: consuming RelayPort) { self.port = port }

        /// Writes in bursts, as batches do.
        func write(_ total: Int) {
            while count < total {
                for _ in 0..<(1 + count % 13) where count < total {
                    if RelayRingTests.write(count, into: &port, to: 1) { count += 1 }
                }
                _ = port.publish(to: 1)
            }
        }

        func read(_ total: Int) {
            while count < total {
                for _ in 0..<128 where !port[reader: 0].isEmpty() {
                    if !RelayRingTests.checkNext(count, of: &port, from: 0) { isRight = false }
                    port[reader: 0].advance()
                    count += 1
                }
                port[reader: 0].release()
            }
        }
    }

    @Test func `two threads hand on every message whole`() async {
        let total = 20_000
        let mesh = RelayMesh(workers: 2)
        let writer = End(mesh.port(of: 0))
        let reader = End(mesh.port(of: 1))
        await withCheckedContinuation { continuation in
            let latch = Latch { continuation.resume() }
            Thread { @Sendable in
                writer.write(total)
                latch.arrive()
            }.start()
            Thread { @Sendable in
                reader.read(total)
                latch.arrive()
            }.start()
        }
        #expect(reader.count == total)
        #expect(reader.isRight)
    }

    /// A barrier for two threads.
    private final class Latch: Sendable {
        private let left = Atomic(2)
        private let open: @Sendable () -> Void

        init(open: @escaping @Sendable () -> Void) { self.open = open }

        func arrive() {
            if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { open() }
        }
    }
}
