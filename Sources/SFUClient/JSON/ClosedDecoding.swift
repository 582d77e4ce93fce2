extension JSON {
    /// Decodes a params object, closed: a key that `type` does not know is refused by name.
    ///
    /// - Throws: `-32602 invalid-params` with `parameter`, the path of the first one at fault.
    public func decodeParams<P: Decodable>(_ type: P.Type) throws(IPCError) -> P {
        try decode(type, isClosed: true)
    }

    /// Decodes a result or an event's data, which may have more members than `type` knows.
    ///
    /// - Throws: `-32602 invalid-params` with the path of what does not fit.
    public func decode<T: Decodable>(_ type: T.Type) throws(IPCError) -> T {
        try decode(type, isClosed: false)
    }

    private func decode<T: Decodable>(
        _ type: T.Type,
        isClosed: Bool
    ) throws(IPCError) -> T {
        do {
            return try TreeDecoder(self, path: [], isClosed: isClosed).decode(type)
        } catch let refusal as IPCError {
            throw refusal
        } catch DecodingError.dataCorrupted(let context) {
            // A `RawRepresentable` enum that has no such case.
            throw context.codingPath.refusal("has a value that is not known")
        } catch {
            throw .invalidParameter("", "params do not fit: \(error)")
        }
    }
}
