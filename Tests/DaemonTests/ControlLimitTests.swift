import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

@Suite struct ControlLimitTests {
    /// Repeats `step` until it is refused; returns the number of successes and the limit named.
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

    @Test func `I6 when memory is short nobody is admitted, and nobody is removed`() throws {
        var limits = ControlLimits()
        limits.memoryMegabytes = 200
        var driver = ControlDriver(limits: limits)
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        try driver.offer("a", "0:audio:recvonly")
        driver.plane.shared.memory.residentMegabytes = 200
        let steps: [(inout ControlDriver) throws -> Void] = [
            { driver in try driver.room("other") }, { driver in try driver.join("c") },
            { driver in try driver.offer("b", "0:audio:recvonly") },
        ]
        for step in steps {
            let refusal = #expect(throws: IPCError.self) { try step(&driver) }
            #expect(refusal?.code == 4029)
            #expect(refusal?.details["limit"] == "memoryMegabytes")
            #expect(refusal?.details["value"] == 200)
            #expect(refusal?.details["load"] == 200)
        }
        #expect(driver.plane.joinsRefused == 3)
        // Joining again takes no more than before.
        try driver.join("a")
        driver.plane.shared.memory.residentMegabytes = 199
        for step in steps { try step(&driver) }
    }

    @Test func `a caller's right is judged before the limits of the settings`() throws {
        var limits = ControlLimits()
        limits.rolesPerRoom = 1
        var driver = ControlDriver(limits: limits)
        try driver.room("r", ["roles": []])
        try driver.join("m", ["role": "moderator"])
        let tooMany: JSON = ["roles": [["name": "a"], ["name": "b"]]]
        for (by, code) in [("x", 4005), ("m", 4029)] {
            let params: JSON = ["room": "r", "settings": tooMany, "by": .string(by)]
            guard case .failure(let error) = driver.call("room.update", params) else {
                Issue.record("not refused")
                continue
            }
            #expect(error.code == code)
        }
    }

    @Test func `roles and topics are bounded, and told by name`() throws {
        var limits = ControlLimits()
        limits.rolesPerRoom = 4
        let roles = try count(limits) { driver, index in
            let names = (0..<index).map { JSON.object(["name": .string("role-\($0)")]) }
            let params: JSON = ["room": "r", "settings": ["roles": .array(names)]]
            if index % 2 == 0 { try driver.room("n\(index)", ["roles": .array(names)]) }
            // A role in use must remain; here nobody is left.
            if index == 0 {
                try driver.done("participant.leave", ["room": "r", "participant": "a"])
            }
            try driver.done("room.update", params)
        }
        // `moderator` is the fourth.
        #expect(roles == (4, "rolesPerRoom"))

        limits = ControlLimits()
        limits.messageTopics = 3
        let heard = try count(limits) { driver, index in
            let topic = JSON.string("topic-\(index)")
            let params: JSON = ["room": "r", "participant": "a", "topic": topic]
            try driver.done("message.subscribe", params)
        }
        #expect(heard == (3, "messageTopics"))
        let kept = try count(limits) { driver, index in
            let topic = JSON.string("topic-\(index)")
            let params: JSON = ["room": "r", "topic": topic, "message": "x", "persist": true]
            try driver.done("message.publish", params)
        }
        #expect(kept == (3, "messageTopics"))
    }

    @Test func `of a topic the newest messages are kept, and of all so many bytes`() throws {
        for (messages, bytes, expected) in [(3, 1 << 20, 3), (100, 1_000, 4), (0, 1 << 20, 0)] {
            var limits = ControlLimits()
            limits.messagesPerTopic = messages
            limits.messageBytes = bytes
            var driver = ControlDriver(limits: limits)
            try driver.room()
            try driver.join("a")
            for number in 0..<10 {
                let text = JSON.string(String(repeating: "\(number)", count: 150))
                try driver.done(
                    "message.publish",
                    ["room": "r", "topic": "t", "message": text, "persist": true]
                )
            }
            let result = try driver.done(
                "message.subscribe",
                ["room": "r", "participant": "a", "topic": "t"]
            ).decode(MessageSubscribe.Result.self)
            #expect(
                result.messages.map { $0.message.first } == Array("0123456789".suffix(expected))
            )
        }
    }

    @Test func `what callers keep with rooms and participants is bounded`() throws {
        var driver = ControlDriver()
        try driver.room()
        for (size, fits) in [(65_520, true), (65_540, false)] {
            let custom: JSON = ["note": .string(String(repeating: "x", count: size))]
            for call in [
                driver.call("room.update", ["room": "r", "custom": custom]),
                driver.call(
                    "participant.join",
                    ["room": "r", "participant": .string("p\(size)"), "custom": custom]
                ),
            ] {
                guard case .failure(let error) = call else {
                    #expect(fits)
                    continue
                }
                #expect(!fits && error.code == -32602 && error.details["parameter"] == "custom")
            }
        }
    }
}
