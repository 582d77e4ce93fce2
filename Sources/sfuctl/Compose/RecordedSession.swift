import Contract
import Foundation
import JSON

/// Contents of `session.json` in a recording's directory (version 1).
///
/// Times are Unix seconds. Unknown members are ignored.
struct RecordedSession: Codable, Equatable, Sendable {
    var version: Int
    var recording: String
    var room: String
    var started: Double
    /// `nil` while the recording runs, and if a crash ended it.
    var stopped: Double?
    var files: [RecordedFile]
    var events: [RecordedEvent]
}

/// One file of a recording, with one kind of media of one stream.
struct RecordedFile: Codable, Equatable, Sendable {
    /// Path relative to the directory.
    var path: String
    var participant: String
    var name: String?
    var stream: String
    /// `camera`, `microphone` or `screen`.
    var source: String
    /// `audio` or `video`.
    var kind: String
    /// Time of the file's timestamp 0.
    var start: Double
    /// Seconds; `nil` or too short if the writer did not close the file.
    var duration: Double?
    var complete: Bool
    /// Periods without samples.
    var gaps: [RecordedGap]?
}

/// A period of a file without samples.
struct RecordedGap: Codable, Equatable, Sendable {
    var start: Double
    /// `nil` if the gap has not ended.
    var end: Double?
}

/// An event during the recording; `type` determines which members exist.
struct RecordedEvent: Codable, Equatable, Sendable {
    var time: Double
    var type: String
    var participant: String?
    var name: String?
    /// In `talkers` events: speakers, the one who began to speak last first.
    var talkers: [String]?
    /// In `pins` events: pinned participants, in the order of the pins.
    var pins: [String]?
    /// In `size` events.
    var stream: String?
    var width: Int?
    var height: Int?
}

/// Reason why a session cannot be composed, as a sentence.
struct ComposeError: Error, Equatable {
    var message: String

    init(_ message: String) { self.message = message }
}

extension RecordedSession {
    /// Name of the description in a recording's directory.
    static let fileName = "session.json"

    /// Largest description that is read, in bytes.
    static let sizeLimit = 64 << 20

    /// Reads the description in `directory`.
    ///
    /// - Throws: `ComposeError` that names the problem.
    static func read(in directory: URL) throws(ComposeError) -> RecordedSession {
        let file = directory.appending(path: fileName)
        let bytes: [UInt8]
        do {
            let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            guard size <= sizeLimit else { throw ComposeError("\(size) bytes are too many") }
            bytes = Array(try Data(contentsOf: file))
        } catch let error as ComposeError {
            throw ComposeError("\(file.path): \(error.message)")
        } catch {
            throw ComposeError("\(file.path) cannot be read: is this a recording's directory?")
        }
        do throws(ComposeError) {
            return try RecordedSession(parsing: bytes)
        } catch {
            throw ComposeError("\(file.path): \(error.message)")
        }
    }

    /// Parses the JSON text of a description.
    ///
    /// - Throws: `ComposeError` with the cause.
    init(parsing bytes: [UInt8]) throws(ComposeError) {
        let json: JSON
        do throws(JSONSyntaxError) {
            json = try JSON(parsing: bytes)
        } catch {
            throw ComposeError("no JSON: \(error.cause) (byte \(error.offset))")
        }
        guard let version = json["version"], version == 1 else {
            throw ComposeError("this is no session of version 1")
        }
        do throws(IPCError) {
            self = try json.decode(RecordedSession.self)
        } catch {
            throw ComposeError(error.message)
        }
    }
}
