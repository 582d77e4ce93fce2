import Testing

@testable import Contract
@testable import JSON

@Suite struct RoomSettingsTests {
    @Test func `settings fill in their defaults, and moderator always exists`() throws {
        let none = RoomSettings().merging(RoomSettingsChange())
        #expect(none == RoomSettings())
        #expect(none.roles.map(\.name) == [.moderator, .participant, .viewer])
        let params: JSON = ["room": "r", "settings": ["roles": [["name": "guest"]]]]
        let change = try params.decodeParams(RoomCreate.Params.self).settings
        let merged = RoomSettings().merging(change ?? RoomSettingsChange())
        #expect(merged.roles.map(\.name) == [.moderator, "guest"])
        #expect(merged.role("guest")?.publish == PublishRights())
    }

    /// Settings with values other than the defaults.
    static let others: [String: JSON] = [
        "mode": "lecture", "knock": true, "maxParticipants": 5, "maxActiveTalkers": 2,
        "autoRecord": true, "roles": [["name": "guest"]], "maxHosts": 3,
        "protectedRoles": ["guest"], "strictModeVocabulary": true, "roleRequestSeconds": 5,
        "strictPins": false,
    ]

    @Test(arguments: others.keys.sorted())
    func `null brings a setting's default back, and changes no other`(_ name: String) throws {
        func change(_ settings: JSON) throws -> RoomSettingsChange {
            let params: JSON = ["room": "r", "settings": settings]
            return try #require(try params.decodeParams(RoomUpdate.Params.self).settings)
        }
        let changed = RoomSettings().merging(try change(.object(Self.others)))
        let unset = JSON(encoding: changed.merging(try change([name: .null])))
        for other in Self.others.keys {
            let expected = other == name ? RoomSettings() : changed
            #expect(unset[other] == JSON(encoding: expected)[other], "\(other)")
            #expect(JSON(encoding: changed)[other] != JSON(encoding: RoomSettings())[other])
        }
    }

    @Test func `a name that stands twice in roles is refused`() {
        let params: JSON = ["room": "r", "settings": ["roles": [["name": "a"], ["name": "a"]]]]
        let refusal = #expect(throws: IPCError.self) {
            _ = try params.decodeParams(RoomCreate.Params.self)
        }
        #expect(refusal?.details["parameter"] == "settings.roles")
    }
}
