/// Mismatch between a value and the type it is decoded as.
package struct JSONMismatch: Error, Hashable, Sendable {
    /// Path from the outermost value, as in `settings.roles[0].name`; empty: that value.
    package var path: String
    package var message: String
}

extension JSON {
    /// Decodes a value as `type`; where `isClosed`, members that `type` does not know are refused.
    ///
    /// - Throws: The first mismatch.
    package func decode<T: Decodable>(
        _ type: T.Type,
        isClosed: Bool
    ) throws(JSONMismatch) -> T {
        do {
            return try TreeDecoder(self, path: [], isClosed: isClosed).decode(type)
        } catch let mismatch as JSONMismatch {
            throw mismatch
        } catch DecodingError.dataCorrupted(let context) {
            // A `RawRepresentable` enum has no such case.
            throw context.codingPath.refusal("has a value that is not known")
        } catch {
            throw JSONMismatch(path: "", message: "params do not fit: \(error)")
        }
    }
}
