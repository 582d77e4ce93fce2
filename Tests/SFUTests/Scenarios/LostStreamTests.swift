import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Outgoing streams that lose a right: their packets queued outside the core must not leave.
struct LostStreamTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var change: @Sendable (inout Call) -> Void
        var lost: Set<UInt32>
    }

    /// SSRCs of the slots in `ForwardingTests.call()`.
    static let video: Set<UInt32> = [0xaaaa, 0xaaab]
    static let audio: Set<UInt32> = [0xbbbb]

    static let cases = [
        Case(
            testDescription: "a closed gate",
            change: { $0.apply(.gate(PublicationID(index: 1, generation: 1), open: false)) },
            lost: video
        ),
        Case(
            testDescription: "an opened gate takes nothing away",
            change: { $0.apply(.gate(PublicationID(index: 1, generation: 1), open: true)) },
            lost: []
        ),
        Case(
            testDescription: "a slot without a source",
            change: { $0.bind(slot: 1, publication: nil) },
            lost: audio
        ),
        Case(
            testDescription: "a slot with another source",
            change: { $0.bind(slot: 0, publication: 0) },
            lost: video
        ),
        Case(
            testDescription: "the same source again",
            change: { $0.bind(slot: 0, publication: 1) },
            lost: []
        ),
        Case(
            testDescription: "a publication that is no longer offered",
            change: { call in call.reconfigure(0) { $0.publications.removeLast() } },
            lost: video
        ),
        Case(
            testDescription: "a slot that is no longer offered",
            change: { call in call.reconfigure(1) { $0.slots.removeLast() } },
            lost: audio
        ),
        Case(
            testDescription: "a publisher that is gone",
            change: { $0.apply(.close($0.peers[0].id)) },
            lost: video.union(audio)
        ),
        Case(
            testDescription: "a viewer that is gone",
            change: { $0.apply(.close($0.peers[1].id)) },
            lost: video.union(audio)
        ),
    ]

    @Test(arguments: cases)
    func `commands tell which streams they take a right from`(_ entry: Case) throws {
        var call = try ForwardingTests.call()
        _ = call.core.takeRevokedSSRCs()
        entry.change(&call)
        let lost = Set(call.core.takeRevokedSSRCs().map(\.rawValue))
        #expect(lost == entry.lost)
        let more = call.core.takeRevokedSSRCs()
        #expect(more.isEmpty)
    }
}
