import Testing

@testable import Contract
@testable import JSON

/// The floor gives no right that mode and role do not give.
struct FloorRightsTests {
    private func act(
        _ method: String,
        _ more: [String: JSON],
        _ driver: inout ControlDriver
    ) throws {
        let params: [String: JSON] = ["room": "r", "by": "m"]
        try driver.done(method, .object(params.merging(more) { $1 }))
    }

    @Test(arguments: ["RECV_ONLY", "SIGNALLING_ONLY", "viewer"])
    func `E-22 the floor stays free for those who may publish`(_ obstacle: String) throws {
        let isRole = obstacle == "viewer"
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        let limit = isRole ? "role" : "mode"
        try driver.join("c", [limit: .string(obstacle)])
        for id: JSON in ["c", "a"] {
            try driver.done("floor.request", ["room": "r", "participant": id])
        }
        _ = driver.takeEventSummaries()
        let grant: JSON = ["room": "r", "participant": "c", "by": "m"]
        guard case .failure(let error) = driver.call("floor.grant", grant) else {
            Issue.record("somebody has the floor who cannot use it")
            return
        }
        #expect(error.reason == (isRole ? "role-may-not-publish" : "mode-may-not-publish"))
        #expect(driver.takeEventSummaries() == [])
        // It is free for another, and the hand stays up for when mode and role allow it.
        #expect(try driver.shown().floor.requested == ["c", "a"])
        try act("floor.grant", ["participant": "a"], &driver)
        try act("floor.release", ["participant": "a"], &driver)
        var right: [String: JSON] = ["participant": "c", "mode": "SEND_AND_RECV"]
        if isRole { right = ["participant": "c", "role": "participant", "force": true] }
        try act(isRole ? "role.change" : "participant.setMode", right, &driver)
        try act("floor.grant", ["participant": "c"], &driver)
        #expect(try driver.shown().floor.granted == ["c"])
    }
}
