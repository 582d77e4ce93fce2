import RTP
import Testing

@testable import Contract
@testable import JSON
@testable import WorkerInterface

/// L1: memory that the control plane keeps of ended rooms.
struct ControlChurnTests {
    /// Counts the elements of all collections within a value, by their path.
    private func count(_ value: Any, at path: String, into counts: inout [String: Int]) {
        let mirror = Swift.Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .collection, .set, .dictionary:
            counts[path, default: 0] += mirror.children.count
            for child in mirror.children { count(child.value, at: path + "[]", into: &counts) }
        default:
            for child in mirror.children {
                count(child.value, at: "\(path).\(child.label ?? "")", into: &counts)
            }
        }
    }

    /// Lets a publisher and a viewer meet in a room, and closes it.
    private func use(_ name: String, _ driver: inout ControlDriver) throws {
        let room: [String: JSON] = ["room": .string(name)]
        try driver.room(name)
        for person in ["a", "b"] { try driver.join(person, room) }
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly", more: room)
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly", more: room)
        for person in ["a", "b"] {
            driver.tell(.transport(try driver.transport(person, room: name), .connected))
        }
        let list = try driver.done("stream.list", .object(room))
        let stream = try list.decode(StreamList.Result.self).streams[0].stream
        let wish: [String: JSON] = ["participant": "b", "stream": .string(stream.rawValue)]
        try driver.done("subscription.add", .object(room.merging(wish) { $1 }))
        try driver.done("room.close", .object(room))
    }

    @Test func `L1 ended rooms leave only the names of the last thousand`() throws {
        var driver = ControlDriver()
        for number in 0..<1_000 {
            let room: JSON = ["room": .string("empty-\(number)")]
            try driver.done("room.create", room)
            try driver.done("room.close", room)
        }
        var before: [String: Int] = [:]
        for number in 0..<1_200 {
            // All names have the same length, because their bytes are counted.
            try use("room-\(10_000 + number)", &driver)
            if number == 1_100 { count(driver.plane, at: "plane", into: &before) }
        }
        var after: [String: Int] = [:]
        count(driver.plane, at: "plane", into: &after)
        #expect(before.values.reduce(0, +) > 2_000, "too little is looked at")
        for (path, number) in after where number > before[path, default: 0] {
            Issue.record("\(path): \(before[path, default: 0]), and a hundred rooms on \(number)")
        }
    }
}
