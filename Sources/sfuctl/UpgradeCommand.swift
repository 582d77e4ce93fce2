import Contract
import Foundation
import JSON
import SFUClient

extension Sfuctl {
    /// Replaces the daemon's program, and waits until the new one answers.
    static func upgrade(
        to binary: String?,
        isJSON: Bool,
        _ client: SFUClient
    ) async throws(ClientError) {
        let before = try await client.serverInfo()
        try await client.upgrade(binary: binary.map(absolute))
        let after = try await successor(of: before, client)
        Output.text(
            isJSON
                ? PrettyJSON.text([
                    "from": .string(before.version), "to": .string(after.version),
                ])
                : "sfud \(before.version) -> \(after.version)"
        )
    }

    /// Returns what the next process says of itself.
    private static func successor(
        of before: ServerInfo.Result,
        _ client: SFUClient
    ) async throws(ClientError) -> ServerInfo.Result {
        for _ in 0..<attempts {
            // The old connection ends in the middle of a call.
            if let info = try? await client.serverInfo(), info.started != before.started {
                return info
            }
            try? await Task.sleep(for: .milliseconds(intervalMilliseconds))
        }
        throw .timeout
    }

    /// Returns a path that means the same in another process.
    static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).path }

    private static let intervalMilliseconds = 20
    private static let attempts = 500
}
