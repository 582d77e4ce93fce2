/// Name of a call of another node in a room's journal: node, life and number.
///
/// A home that was lost may have executed a call and not answered it. The next home knows by the
/// name whether it took effect.
enum CallName {
    static func text(_ node: NodeName, _ boot: String, _ number: UInt64) -> String {
        "\(node).\(number).\(boot)"
    }

    /// Returns the key of the record that stands for a call.
    ///
    /// Records of rooms begin with a letter and the room's name, and none of them with this one.
    static func key(_ name: String, of room: String) -> String { "k/\(room)/\(name)" }

    /// Returns the name in such a key; `nil` if it is another one.
    static func name(in key: String, of room: String) -> String? {
        let prefix = "k/\(room)/"
        return key.hasPrefix(prefix) ? String(key.dropFirst(prefix.count)) : nil
    }
}
