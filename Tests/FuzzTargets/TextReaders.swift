import Contract
import Daemon
import Foundation
import JSON
import RTP
import Rooms
import SFU
import TestSupport
import WorkerInterface

/// Reads an IPC line as either side does, writes it and reads it once more.
func readJSON(_ bytes: [UInt8]) throws(Violation) -> Int {
    if let request = try? IPCRequest(line: bytes) {
        guard (try? IPCRequest(line: request.encoded())) == request else {
            throw Violation("a request is another one when it has been written and read")
        }
    }
    var sum = (try? IPCMessage(line: bytes)) == nil ? 0 : 1
    guard let json = try? JSON(parsing: bytes) else { return sum }
    let written = JSON.encoded(json)
    sum += written.count
    guard (try? JSON(parsing: written)) == json else {
        throw Violation("a value is another one when it has been written and read")
    }
    return sum
}

/// Reads a configuration file, and after each form feed a flag of the command line.
func readConfiguration(_ bytes: [UInt8]) throws(Violation) -> Int {
    let parts = bytes.split(separator: 0x0c, omittingEmptySubsequences: false).map { Array($0) }
    let flags = parts.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    let defaults = Configuration(environment: [:], userID: 0, cores: 1, directory: "/")
    let invocation: Invocation
    do throws(ConfigurationError) {
        invocation = try CommandLineOptions.invocation(
            ["--config", "file"] + flags,
            defaults: defaults,
            read: { _ in parts[0] }
        )
    } catch {
        return error.description.utf8.count
    }
    guard case .run(let configuration) = invocation else { return 1 }
    for limit in ConfigurationLimit.all
    where !limit.range.contains(configuration.limits[keyPath: limit.path]) {
        throw Violation("limits.\(limit.name) is out of its range")
    }
    guard (1...Configuration.maximumWorkers).contains(configuration.workers) else {
        throw Violation("\(configuration.workers) workers")
    }
    return ConfigurationKey.allCases.reduce(2) { $0 + $1.text(of: configuration).utf8.count }
}

/// A series of offers of one client, separated by form feeds.
struct OfferTrial {
    private var identifiers = WorkerIdentifiers(transports: 4, publications: 64, slots: 64)
    private var random = SeededRandom(seed: 1)
    private var negotiation = Negotiation(local: Self.local)

    static func run(_ bytes: [UInt8]) throws(Violation) -> Int {
        var trial = Self()
        var sum = 0
        for part in bytes.split(separator: 0x0c) {
            sum += try trial.take(String(decoding: part, as: UTF8.self))
        }
        return sum
    }

    private mutating func take(_ offer: String) throws(Violation) -> Int {
        switch answer(offer) {
        case .failure(let error): return error.line
        case .success(let answer):
            try check(answer, to: offer)
            for id in answer.endedPublications { identifiers.publications.release(id) }
            for id in answer.endedSlots { identifiers.slots.release(id) }
            return answer.sdp.utf8.count
        }
    }

    private mutating func answer(_ offer: String) -> Result<Answer, SDPError> {
        do throws(SDPError) {
            return .success(
                try negotiation.answer(
                    offer,
                    identifiers: &identifiers,
                    random: &random,
                    policy: { $0.mid == "x" ? "role" : nil }
                )
            )
        } catch {
            return .failure(error)
        }
    }

    /// Checks that the answer parses, and that repeating the offer changes nothing.
    private mutating func check(_ answer: Answer, to offer: String) throws(Violation) {
        let read = try? SessionDescription(answer.sdp)
        guard read?.media.count == answer.media.count else {
            throw Violation("the answer cannot be read as it was meant")
        }
        let used = identifiers.publications.used + identifiers.slots.used
        switch self.answer(offer) {
        case .failure(let error): throw Violation("the same offer is refused: \(error.cause)")
        case .success(let again):
            guard identifiers.publications.used + identifiers.slots.used == used,
                again.media.map(\.mid) == answer.media.map(\.mid), !again.isICERestart
            else { throw Violation("the same offer has another answer") }
        }
    }

    private static let local = LocalParameters(
        candidates: [Candidate(address: "127.0.0.1", port: 5004)],
        fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32)),
        cname: "fuzz"
    )
}
