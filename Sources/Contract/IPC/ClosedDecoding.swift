public import JSON

extension JSON {
    /// Decodes a params object; a key that `type` does not know is refused by name.
    ///
    /// - Throws: `-32602 invalid-params` with `parameter`, the path of the first invalid one.
    public func decodeParams<P: Decodable>(_ type: P.Type) throws(IPCError) -> P {
        try refusing { () throws(JSONMismatch) in try decode(type, isClosed: true) }
    }

    /// Decodes a result or an event's data, which may have members that `type` does not know.
    ///
    /// - Throws: `-32602 invalid-params` with the path of the mismatch.
    public func decode<T: Decodable>(_ type: T.Type) throws(IPCError) -> T {
        try refusing { () throws(JSONMismatch) in try decode(type, isClosed: false) }
    }

    private func refusing<T>(_ decode: () throws(JSONMismatch) -> T) throws(IPCError) -> T {
        do {
            return try decode()
        } catch {
            throw .invalidParameter(error.path, error.message)
        }
    }
}
