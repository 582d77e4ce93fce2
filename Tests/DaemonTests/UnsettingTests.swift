import JSON
import Testing

@testable import Contract

/// Contract 2, rule 4: `null` unsets whatever is optional.
@Suite struct UnsettingTests {
    @Test func `null brings a room's settings back to their defaults`() throws {
        var driver = ControlDriver()
        try driver.room(
            "r",
            ["knock": true, "maxHosts": 3, "strictPins": false, "roles": [["name": "guest"]]]
        )
        try driver.done("room.update", ["room": "r", "settings": ["knock": .null]])
        var settings = try driver.shown().settings
        #expect(!settings.knock && settings.maxHosts == 3 && !settings.strictPins)
        #expect(settings.roles.map(\.name) == [.moderator, "guest"])
        let rest: JSON = ["maxHosts": .null, "strictPins": .null, "roles": .null]
        try driver.done("room.update", ["room": "r", "settings": rest])
        settings = try driver.shown().settings
        #expect(settings.maxHosts == 1 && settings.strictPins)
        #expect(settings.roles.map(\.name) == [.moderator, .participant, .viewer])
        // The room itself has them too: nobody knocks, and the role is there again.
        try driver.join("a")
        #expect(try driver.shown().participants.map(\.role) == ["participant"])
    }

    @Test func `null in a takeover unsets the name and the custom data`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a", ["name": "Ann", "custom": ["k": 1]])
        try driver.join("a")
        var info = try #require(try driver.shown().participants.first)
        #expect(info.name == "Ann" && info.custom == ["k": 1])
        driver.events = []
        try driver.join("a", ["name": .null, "custom": .null])
        info = try #require(try driver.shown().participants.first)
        #expect(info.name == "" && info.custom == [:])
        let told = try #require(driver.events.last)
        #expect(told.event == "participant.joined")
        #expect(told.data["participantInfo"]?["name"] == .string(""))
        #expect(told.data["participantInfo"]?["custom"] == .object([:]))
        // Somebody new has nothing to unset.
        try driver.join("b", ["name": .null, "custom": .null])
        #expect(try driver.shown().participants.map(\.name) == ["", ""])
    }
}
