import Testing

@testable import Rooms

struct RecordingNameTests {
    static let stamps: [(seconds: Double, text: String)] = [
        (0, "19700101T000000Z"), (951_782_399, "20000228T235959Z"),
        (951_782_400, "20000229T000000Z"), (1_763_752_958.9, "20251121T192238Z"),
        (4_107_542_400, "21000301T000000Z"), (-1, "19700101T000000Z"),
    ]

    @Test(arguments: stamps)
    func `a directory's name has the date`(seconds: Double, text: String) {
        #expect(RecordingName.stamp(seconds) == text)
        let name = RecordingName.directory(room: "..", at: seconds, word: "x")
        #expect(name == "_.-\(text)-x")
    }
}
