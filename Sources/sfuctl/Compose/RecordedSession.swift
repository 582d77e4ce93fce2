import Contract
import Foundation
import JSON

/// What the `session.json` of a recording's directory tells (version 1).
///
/// Times are Unix seconds. What a later writer adds is passed over.
struct RecordedSession: Codable, Equatable, Sendable {
    var version: Int
    var recording: String
    var room: String
    var started: Double
    /// `nil` while the recording runs, and where a crash ended it.
    var stopped: Double?
    var files: [RecordedFile]
    var events: [RecordedEvent]
}

/// One file of a recording: one kind of media of one stream.
struct RecordedFile: Codable, Equatable, Sendable {
    /// Relative to the directory.
    var path: String
    var participant: String
    var name: String?
    var stream: String
    /// `camera`, `microphone` or `screen`.
    var source: String
    /// `audio` or `video`.
    var kind: String
    /// When the file's own time 0 was.
    var start: Double
    /// Seconds; `nil` or too short where its writer has not closed it.
    var duration: Double?
    var complete: Bool
    /// Where it holds no samples.
    var gaps: [RecordedGap]?
}

/// A stretch of a file without samples.
struct RecordedGap: Codable, Equatable, Sendable {
    var start: Double
    /// `nil` while it lasts.
    var end: Double?
}

/// Something that happened while the recording ran; which members there are is up to `type`.
struct RecordedEvent: Codable, Equatable, Sendable {
    var time: Double
    var type: String
    var participant: String?
    var name: String?
    /// Of `talkers`: who began to speak last comes first.
    var talkers: [String]?
    /// Of `size`.
    var stream: String?
    var width: Int?
    var height: Int?
}

/// Why a session cannot be composed, in a sentence.
struct ComposeError: Error, Equatable {
    var message: String

    init(_ message: String) { self.message = message }
}

extension RecordedSession {
    /// The name of the description in a recording's directory.
    static let fileName = "session.json"

    /// The largest description that is read, in bytes.
    static let sizeLimit = 64 << 20

    /// Reads the description in `directory`.
    ///
    /// - Throws: `ComposeError` that names what is wrong with it.
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

    /// Reads the JSON text of a description.
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
