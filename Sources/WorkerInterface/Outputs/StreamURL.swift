/// Where a room's live stream goes.
///
/// Its path mostly is a key that lets anybody stream in the room's name, so however it is
/// printed it shows the server alone; `text` is for whoever connects.
package struct StreamURL: Hashable, Sendable {
    package let text: String
    /// In small letters.
    package let scheme: String
    /// `rtmp://host:port`, without what is secret.
    package let server: String

    package static let byteLimit = 2_048

    /// A name's length in bytes (RFC 1035 §2.3.4); libavformat cuts what is longer than 255.
    private static let hostLimit = 253

    /// Reads `scheme://[user[:password]@]host[:port]/path`, in ASCII without blanks.
    ///
    /// `nil`: it is none, or two readers could find different servers in it. libavformat ends the
    /// authority at `?` and `#` too, and others take `\` for `/`.
    package init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let (scheme, rest) = Self.split(text[...], at: "://"),
            let (authority, path) = Self.split(rest, at: "/"), !path.isEmpty
        else { return nil }
        guard !scheme.isEmpty, scheme.allSatisfy({ $0.isASCII && $0.isLetter }) else { return nil }
        let parts = authority.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count <= 2, let server = parts.last, Self.isServer(server),
            parts.count == 1 || Self.isUser(parts[0])
        else { return nil }
        self.text = text
        self.scheme = scheme.lowercased()
        self.server = "\(scheme.lowercased())://\(server)"
    }

    /// `userinfo` of RFC 3986 §3.2.1, not empty.
    private static func isUser(_ text: Substring) -> Bool {
        let marks = "-._~%!$&'()*+,;=:"
        return !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || marks.contains($0) }
    }

    private static func split(_ text: Substring, at mark: String) -> (Substring, Substring)? {
        var start = text.startIndex
        while start < text.endIndex {
            if text[start...].hasPrefix(mark) {
                return (text[..<start], text[start...].dropFirst(mark.count))
            }
            start = text.index(after: start)
        }
        return nil
    }

    /// `host`, `host:port`, `[address]` or `[address]:port`.
    private static func isServer(_ text: Substring) -> Bool {
        var host = text
        var port: Substring?
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return false }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return false }
            port = rest.isEmpty ? nil : rest.dropFirst()
            guard host.contains(":"),
                host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
            else { return false }
        } else {
            if let colon = text.firstIndex(of: ":") {
                host = text[..<colon]
                port = text[text.index(after: colon)...]
            }
            guard host.allSatisfy({ $0.isLetter || $0.isNumber || "-._".contains($0) })
            else { return false }
        }
        guard (1...hostLimit).contains(host.utf8.count) else { return false }
        guard let port else { return true }
        // Swift reads a sign, too.
        guard port.allSatisfy(\.isNumber), let number = UInt16(port) else { return false }
        return number > 0
    }
}

extension StreamURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { server }
    package var debugDescription: String { server }
    package var customMirror: Swift.Mirror {
        Swift.Mirror(self, children: ["server": server])
    }
}

/// What a live stream is, and where it goes.
package struct StreamTarget: Hashable, Sendable {
    /// Who is seen.
    package enum Layout: String, Hashable, Sendable, CaseIterable {
        /// One picture: a shared screen, or else who talks.
        case stage
        /// All in tiles.
        case grid

        /// Pictures that are shown at one time.
        package var tiles: Int {
            switch self {
            case .stage: 1
            case .grid: 9
            }
        }
    }

    package var url: StreamURL
    package var layout: Layout
    /// In pixels; even.
    package var width: Int
    package var height: Int
    /// Of the picture, in bits a second.
    package var bitrate: Int

    package init(url: StreamURL, layout: Layout, width: Int, height: Int, bitrate: Int) {
        self.url = url
        self.layout = layout
        self.width = width
        self.height = height
        self.bitrate = bitrate
    }
}
