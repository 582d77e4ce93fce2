/// Name of a node: 1 to 64 of `A-Z a-z 0-9 _ -`.
///
/// It is a token of a NATS subject as it is.
package struct NodeName: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// Returns `nil` if the string is no name of a node.
    package init?(rawValue: String) {
        guard (1...Self.byteLimit).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy(RoomKey.isPlain)
        else { return nil }
        self.rawValue = rawValue
    }

    package var description: String { rawValue }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// Longest name, in bytes.
    package static let byteLimit = 64
}

extension NodeName: Codable {
    package init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let name = Self(rawValue: text) else {
            let context = DecodingError.Context(
                codingPath: decoder.codingPath,
                debugDescription: "is no name of a node"
            )
            throw DecodingError.dataCorrupted(context)
        }
        self = name
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// A room's id as a token of a NATS subject.
///
/// A `.` would end the token and `:` is not permitted in keys, so these are written `=2E` and
/// `=3A`; ids have no `=` of their own.
package enum RoomKey {
    /// Returns the token of a room's id.
    package static func token(of room: String) -> String {
        var token = ""
        for scalar in room.unicodeScalars {
            switch scalar {
            case ".": token += "=2E"
            case ":": token += "=3A"
            default: token.unicodeScalars.append(scalar)
            }
        }
        return token
    }

    /// Returns the id that a token stands for, or `nil` if it is none.
    package static func room(of token: String) -> String? {
        var room = ""
        var rest = token.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            if scalar == "=" {
                switch String(rest.prefix(2)) {
                case "2E": room += "."
                case "3A": room += ":"
                default: return nil
                }
                rest = rest.dropFirst(2)
            } else {
                guard let byte = UInt8(exactly: scalar.value), isPlain(byte) else { return nil }
                room.unicodeScalars.append(scalar)
            }
        }
        return (1...128).contains(room.utf8.count) ? room : nil
    }

    /// Whether a byte stands for itself in a token.
    static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
