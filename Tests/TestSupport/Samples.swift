package import Foundation

/// Sample files of other people, in `SFUD_SHARED` or beside the repository; where they are
/// missing, their tests do nothing.
package enum Samples {
    package static let root: URL =
        ProcessInfo.processInfo.environment["SFUD_SHARED"].map { URL(filePath: $0) }
        ?? URL(filePath: #filePath).appending(path: "../../../../shared").standardized

    /// Returns the bytes of each file in a folder, by name.
    package static func files(_ folder: String) -> [(name: String, bytes: [UInt8])] {
        let directory = root.appending(path: folder)
        let names = try? FileManager.default.contentsOfDirectory(atPath: directory.path)
        return (names ?? []).sorted().compactMap { name in
            let data = try? Data(contentsOf: directory.appending(path: name))
            return data.map { (name, [UInt8]($0)) }
        }
    }

    /// Returns the UDP payloads of a capture; empty where the file is missing.
    package static func datagrams(capture name: String) -> [[UInt8]] {
        files("corpora/pcap").filter { $0.name == name }.flatMap { udpPayloads($0.bytes) }
    }

    /// Reads a little-endian capture of Ethernet frames with IPv4 and UDP.
    private static func udpPayloads(_ file: [UInt8]) -> [[UInt8]] {
        guard file.starts(with: [0xd4, 0xc3, 0xb2, 0xa1]) else { return [] }
        var payloads: [[UInt8]] = []
        var position = 24
        while position + 16 <= file.count {
            let length = (0..<4).reduce(0) { $0 | Int(file[position + 8 + $1]) << (8 * $1) }
            let start = position + 16
            guard start + length <= file.count else { break }
            position = start + length
            let frame = Array(file[start..<position])
            guard frame.count > 42, frame[12] == 8, frame[13] == 0, frame[23] == 17 else {
                continue
            }
            let udp = 14 + 4 * Int(frame[14] & 0x0f)
            payloads.append(Array(frame[(udp + 8)...]))
        }
        return payloads
    }
}
