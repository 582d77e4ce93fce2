/// URL that a room's live stream is sent to.
///
/// Its path usually contains a key with which anybody could stream in the room's name. So its
/// printed forms show the server only; `text` has all of it, for the connection itself.
package struct StreamURL: Hashable, Sendable, Codable {
    package let text: String
    /// Scheme in lowercase.
    package let scheme: String
    /// `rtmp://host:port`, without the secret parts.
    package let server: String

    /// The server alone, without user, password and path.
    package var withoutSecrets: Self { Self(text: server, scheme: scheme, server: server) }

    private init(text: String, scheme: String, server: String) {
        self.text = text
        self.scheme = scheme
        self.server = server
    }

    package static let byteLimit = 2_048

    /// Longest host name, in bytes (RFC 1035 §2.3.4); libavformat truncates hosts longer than 255.
    private static let hostLimit = 253

    /// Parses `scheme://[user[:password]@]host[:port]/path`, in ASCII without blanks.
    ///
    /// Returns `nil` if the text is no such URL, or if two parsers could find different servers in
    /// it. libavformat ends the authority at `?` and `#` too, and others treat `\` as `/`.
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

    /// Whether text is a non-empty `userinfo` of RFC 3986 §3.2.1.
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

    /// Whether text is `host`, `host:port`, `[address]` or `[address]:port`.
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
        // Swift would accept a sign, too.
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

/// Destination and form of a live stream.
package struct StreamTarget: Hashable, Sendable, Codable {
    /// Choice of the participants that are shown.
    package enum Layout: String, Hashable, Sendable, CaseIterable, Codable {
        /// One picture: a screen share, or else the active speaker; and the pinned beside it.
        case stage
        /// Tiles with as many participants as there are tiles, or with the pinned alone.
        case grid
    }

    /// Maximum number of pictures shown at a time.
    package static let tileLimit = 9

    package var url: StreamURL
    package var layout: Layout
    /// Size of the picture, in pixels; even.
    package var width: Int
    package var height: Int
    /// Video bitrate, in bits a second.
    package var bitrate: Int

    package init(url: StreamURL, layout: Layout, width: Int, height: Int, bitrate: Int) {
        self.url = url
        self.layout = layout
        self.width = width
        self.height = height
        self.bitrate = bitrate
    }
}
