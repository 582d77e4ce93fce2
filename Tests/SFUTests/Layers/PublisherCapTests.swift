import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Layers above the cap of their publisher's role or the subscriber's: they go to nobody, are not
/// asked for, and the subscribers are told why.
struct PublisherCapTests {
    private static let slot = SlotID(index: 0, generation: 1)
    private static let publication = PublicationID(index: 1, generation: 1)

    /// Connects a publisher of these encodings to a viewer.
    private static func call(_ rids: [String?], _ cap: LayerCap) throws -> Call {
        var call = try Call()
        var publication = Media.video(1, rids: rids)
        publication.cap = cap
        call.join(publications: [publication])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.run(milliseconds: 20)
        return call
    }

    /// A publisher without simulcast, whose picture begins small and grows, as browsers' do.
    private struct SingleCall: ~Copyable {
        var call: Call
        private var step: UInt16 = 0

        init(_ cap: LayerCap) throws { call = try PublisherCapTests.call([nil], cap) }

        /// Sends two seconds of pictures; returns how many the viewer received of them.
        mutating func send(width: UInt16, startsWithKeyframe: Bool = true) -> Int {
            call.peers[1].received = []
            for index in 0..<60 {
                call.sendVideo(
                    sequence: step,
                    pictureID: step,
                    isKeyframe: startsWithKeyframe && index == 0
                        || call.keyframeRequests(at: 0) > 0,
                    width: width
                )
                call.peers[0].reports = []
                step += 1
                call.run(milliseconds: 33)
            }
            return call.peers[1].received.count
        }

        /// Sends sixty keyframes, a third of them of one width, while the viewer changes what it
        /// prefers; returns the widths that it received.
        mutating func alternate(_ one: UInt16, _ other: UInt16) -> [UInt16] {
            call.peers[1].received = []
            for index in 0..<60 {
                call.sendVideo(
                    sequence: step,
                    pictureID: step,
                    isKeyframe: true,
                    width: index.isMultiple(of: 3) ? one : other
                )
                let preference = LayerCap(width: index.isMultiple(of: 2) ? 1_920 : 1_280)
                call.bind(slot: 0, publication: 1, preference: preference)
                step += 1
                call.run(milliseconds: 33)
            }
            return call.peers[1].payloads(of: 0xaaaa).compactMap { payload in
                VP8Descriptor(payload.span).map { descriptor in
                    let place = descriptor.length + 6
                    return UInt16(payload[place]) | UInt16(payload[place + 1]) << 8
                }
            }
        }

        mutating func takeHolds() -> [VideoHold?] {
            call.takeEvents().compactMap { event -> VideoHold?? in
                if case .videoHeld(_, _, let reason) = event { .some(reason) } else { nil }
            }
        }
    }

    @Test func `R-1 a picture that grows above the cap stops, and is back once it is smaller`()
        throws
    {
        var call = try SingleCall(LayerCap(width: 640, height: 480))
        let small = call.send(width: 320)
        #expect(small > 50)
        let large = call.send(width: 1_280)
        #expect(large == 0)
        let held = call.takeHolds()
        #expect(held == [.role])
        #expect(call.call.core.explain(Self.slot, at: call.call.now)?.limit == .role)
        let again = call.send(width: 320)
        #expect(again > 50)
        let released = call.takeHolds()
        #expect(released == [nil])
    }

    @Test func `R-1 a lower cap stops what flows with the next packet, and its end brings it back`()
        throws
    {
        var call = try SingleCall(.none)
        let before = call.send(width: 640)
        #expect(before > 50)
        call.call.apply(.limit(Self.publication, LayerCap(width: 320, height: 180)))
        let meanwhile = call.send(width: 640)
        #expect(meanwhile == 0)
        call.call.apply(.limit(Self.publication, .none))
        let after = call.send(width: 640)
        #expect(after > 50)
        let holds = call.takeHolds()
        #expect(holds == [.role, nil])
    }

    @Test func `R-1 a cap that comes while the publisher pauses holds for what comes next`() throws
    {
        var call = try SingleCall(.none)
        _ = call.send(width: 640)
        call.call.run(milliseconds: 2_500)
        call.call.apply(.limit(Self.publication, LayerCap(width: 320, height: 180)))
        let after = call.send(width: 640, startsWithKeyframe: false)
        #expect(after == 0)
    }

    /// A publisher of two encodings, whose lower one ignores all requests for keyframes.
    private struct UnwillingCall: ~Copyable {
        var call: Call
        private var step: UInt16 = 0

        init(_ cap: LayerCap) throws { call = try PublisherCapTests.call(["l", "h"], cap) }

        /// Sends 60 pictures of the higher encoding, and 10 of the lower one; returns how many the
        /// viewer received.
        mutating func send(width: UInt16) -> Int {
            call.peers[1].received = []
            for index in 0..<60 {
                call.sendVideo(
                    rid: "h",
                    sequence: step,
                    pictureID: step,
                    isKeyframe: index == 0,
                    width: width
                )
                if index.isMultiple(of: 6) {
                    call.sendVideo(
                        ssrc: 0x2221,
                        rid: "l",
                        sequence: step / 6,
                        pictureID: step / 6,
                        isKeyframe: step == 0,
                        width: 320,
                        timestamp: UInt32(step) * 3_000
                    )
                }
                step += 1
                call.run(milliseconds: 33)
            }
            return call.peers[1].received.count
        }
    }

    @Test(arguments: [false, true])
    func `R-1 no keyframe of a lower encoding has to come before one above the cap stops`(
        _ isCappedLater: Bool
    ) throws {
        let cap = LayerCap(width: 640, height: 480)
        var call = try UnwillingCall(isCappedLater ? .none : cap)
        _ = call.send(width: 640)
        let before = call.send(width: isCappedLater ? 1_280 : 640)
        #expect(before > 50)
        if isCappedLater { call.call.apply(.limit(Self.publication, cap)) }
        // The lower encoding and its warm picture are within the cap.
        let after = call.send(width: 1_280)
        #expect(after < 35)
        #expect(call.call.core.explain(Self.slot, at: call.call.now)?.limit == .role)
    }

    @Test func `R-1 a picture above a lower cap is not sent again`() throws {
        var call = try SingleCall(.none)
        _ = call.send(width: 640)
        let last = try #require(call.call.peers[1].received.last).u16(2)
        let repeated = Self.repeated(last &- 4..<last, &call.call)
        #expect(repeated == 4)
        call.call.apply(.limit(Self.publication, LayerCap(width: 320, height: 180)))
        let after = Self.repeated(last &- 9..<last &- 4, &call.call)
        #expect(after == 0)
    }

    private static func repeated(_ numbers: Range<UInt16>, _ call: inout Call) -> Int {
        call.peers[1].received = []
        call.nack(numbers, from: 1, ssrc: 0xaaaa)
        call.run(milliseconds: 100)
        return call.peers[1].received.count
    }

    @Test func `R-1 sizes that change with each picture show none above the cap`() throws {
        var call = try SingleCall(LayerCap(width: 640, height: 480))
        _ = call.send(width: 320)
        let widths = call.alternate(320, 1_280)
        #expect(!widths.contains(1_280) && widths.count > 5)
        // It begins with a keyframe once layers may be selected again.
        let after = call.send(width: 320)
        #expect(after > 40)
    }

    @Test(arguments: SpatialNoticeTests.codings)
    func `R-1 of spatial layers, those above a viewer's new cap are left out at once`(
        _ coding: Coding
    ) throws {
        var driver = try LayerDriver(coding, .clean, seed: 11)
        for _ in 0..<60 { driver.step(aims: false) }
        let place = SlotIndex(0)
        let before = driver.call.core.forwarder.slots[place].rewriter.current.point.spatial
        #expect(before >= 2)
        driver.call.bind(slot: 0, publication: 1, roleCap: LayerCap(width: 640, height: 360))
        let isSentStill = driver.call.core.forwarder.slots[place].encodingForwarded != nil
        #expect(!isSentStill)
        for _ in 0..<120 { driver.step(aims: false) }
        let after = driver.call.core.forwarder.slots[place].rewriter.current.point.spatial
        #expect(after == 1)
        driver.finish()
        let violations = driver.models[0].violations
        #expect(violations.isEmpty && driver.models[0].broken == 0)
    }

    @Test func `R-1 a lower cap takes back what waits to be sent`() throws {
        var call = try SingleCall(.none)
        _ = call.send(width: 640)
        _ = call.call.core.takeRevokedSSRCs()
        call.call.apply(.limit(Self.publication, LayerCap(width: 320, height: 180)))
        let revoked = call.call.core.takeRevokedSSRCs()
        #expect(revoked.contains(SSRC(rawValue: 0xaaaa)))
    }

    @Test func `R-1 if all is above the cap, the lowest encoding is still asked for`() throws {
        var call = try Self.obeying()
        call.run(until: 8)
        call.call.apply(.limit(Self.publication, LayerCap(width: 160, height: 90)))
        call.run(until: 14)
        let held = call.takeVideoHolds()
        #expect(held == [.role])
        // Without its packets nobody would see that the publisher has come within the cap.
        #expect(call.wishes.last?.mask == 0b001)
        call.call.apply(.limit(Self.publication, .none))
        call.run(until: 20)
        #expect(call.changes.last?.width == 1_280)
        let released = call.takeVideoHolds()
        #expect(released == [nil])
    }

    @Test func `R-1 a bitrate above the cap takes no single picture away`() throws {
        var call = try SingleCall(LayerCap(bitrate: 2_000))
        _ = call.send(width: 640)
        let after = call.send(width: 640)
        #expect(after > 50)
        let holds = call.takeHolds()
        #expect(holds.isEmpty)
    }

    private static func obeying() throws -> LayeredCall {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 10e6)]
        settings.obeyingWithRamp = 0.1
        return try LayeredCall(settings, seed: 3)
    }

    @Test func `R-1 a publisher that obeys is not asked for what its role does not permit`() throws
    {
        var call = try Self.obeying()
        call.run(until: 8)
        #expect(call.changes.last?.width == 1_280)
        let asked = call.wishes.count
        call.call.apply(.limit(Self.publication, LayerCap(width: 640, height: 360)))
        call.run(until: 40)
        #expect(call.changes(in: 8..<40).map(\.width) == [640])
        #expect(call.core(limitOf: Self.slot) == .role)
        // The middle encoding at once, and the highest no longer once it has been unused.
        #expect(call.wishes.count <= asked + 2)
        #expect(call.wishes.last?.mask == 0b010)
        call.call.apply(.limit(Self.publication, .none))
        call.run(until: 46)
        #expect(call.changes.last?.width == 1_280)
    }

    @Test func `R-1 what was above the cap by its bitrate is tried again, but seldom`() throws {
        var call = try Self.obeying()
        call.run(until: 8)
        // The highest encoding with the fewest frames takes 600 kbit/s.
        call.call.apply(.limit(Self.publication, LayerCap(bitrate: 550_000)))
        call.run(until: 30)
        #expect(call.changes(in: 8..<30).map(\.width) == [640])
        call.run(until: 110)
        let returns = call.changes(in: 30..<110).filter { $0.width == 1_280 }
        #expect((1...3).contains(returns.count))
    }
}

extension LayeredCall {
    fileprivate func core(limitOf slot: SlotID) -> LayerLimit? {
        call.core.explain(slot, at: call.now)?.limit
    }
}
