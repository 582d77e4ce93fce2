import SFU
import SFUClient
import Testing

@testable import sfud

@Suite struct ControlLimitTests {
    /// Does `step` until it is refused; returns how often it was done and what was named.
    private func count(
        _ limits: ControlLimits,
        _ step: (inout ControlDriver, Int) throws -> Void
    ) throws -> (done: Int, named: JSON?) {
        var driver = ControlDriver(limits: limits)
        try driver.room()
        try driver.join("a")
        for index in 0..<20 {
            do {
                try step(&driver, index)
            } catch let refusal as IPCError {
                #expect(refusal.code == 4029 && refusal.reason == "limit-reached")
                return (index, refusal.details["limit"])
            }
        }
        return (20, nil)
    }

    @Test func `each limit is met exactly and named`() throws {
        var limits = ControlLimits()
        limits.rooms = 3
        let rooms = try count(limits) { driver, index in try driver.room("n\(index)") }
        #expect(rooms == (2, "rooms"))

        limits = ControlLimits()
        limits.participantsPerRoom = 4
        let people = try count(limits) { driver, index in try driver.join("p\(index)") }
        #expect(people == (3, "participantsPerRoom"))

        limits = ControlLimits()
        limits.transportsPerParticipant = 2
        let transports = try count(limits) { driver, index in
            let name = JSON.string("t\(index)")
            try driver.offer("a", "0:audio:recvonly", more: ["transport": name])
        }
        #expect(transports == (2, "transportsPerParticipant"))

        limits = ControlLimits()
        limits.transportsPerWorker = 3
        let all = try count(limits) { driver, index in
            try driver.join("p\(index)")
            try driver.offer("p\(index)", "0:audio:recvonly")
        }
        #expect(all == (3, "transportsPerWorker"))

        limits = ControlLimits()
        limits.subscriptionsPerParticipant = 1
        let subscriptions = try count(limits) { driver, index in
            if index == 0 { try driver.offer("a", "0:audio:recvonly", "1:audio:recvonly") }
            try driver.join("p\(index)")
            try driver.offer("p\(index)", "0:audio:sendonly")
            let stream = try driver.shown().streams[index].stream
            let params: JSON = [
                "room": "r", "participant": "a", "stream": .string(stream.rawValue),
            ]
            try driver.done("subscription.add", params)
        }
        #expect(subscriptions.done == 1)
        #expect(subscriptions.named == "subscriptionsPerParticipant")
    }
}
