/// Iterator over the elements of an RTP header extension block, one- or two-byte form (RFC 8285
/// §4).
///
/// It ends at the first element that does not fit; earlier elements stay valid.
public struct HeaderExtensions: ~Escapable {
    /// Header extension element: its negotiated id and the range of its data in the packet.
    public struct Element: Equatable, Sendable {
        public var id: UInt8
        /// Offset from the packet's first byte.
        public var offset: Int
        public var length: Int

        @inlinable
        init(id: UInt8, offset: Int, length: Int) {
            self.id = id
            self.offset = offset
            self.length = length
        }
    }

    @usableFromInline enum Form { case none, oneByte, twoByte }

    @usableFromInline let block: Span<UInt8>
    @usableFromInline let form: Form
    @usableFromInline let offset: Int
    @usableFromInline var position = 0

    @inlinable
    @_lifetime(copy block)
    init(block: Span<UInt8>, profile: UInt16, offset: Int) {
        self.block = block
        self.offset = offset
        switch profile {
        case 0xbede: form = .oneByte
        case 0x1000...0x100f: form = .twoByte
        default: form = .none
        }
    }

    /// Returns the next element and skips padding; returns `nil` at the end.
    @inlinable
    public mutating func next() -> Element? {
        switch form {
        case .none: nil
        case .oneByte: nextOneByte()
        case .twoByte: nextTwoByte()
        }
    }

    @inlinable
    mutating func nextOneByte() -> Element? {
        while position < block.count {
            let head = block[position]
            position += 1
            guard head != 0 else { continue }
            // Id 15 ends the iteration, whatever follows (RFC 8285 §4.2).
            guard head >> 4 != 15 else { break }
            let length = Int(head & 0x0f) + 1
            guard head >> 4 != 0 else {
                position += length
                continue
            }
            return take(id: head >> 4, length: length)
        }
        position = block.count
        return nil
    }

    @inlinable
    mutating func nextTwoByte() -> Element? {
        while position < block.count {
            let id = block[position]
            position += 1
            guard id != 0 else { continue }
            guard position < block.count else { break }
            let length = Int(block[position])
            position += 1
            return take(id: id, length: length)
        }
        position = block.count
        return nil
    }

    @inlinable
    mutating func take(id: UInt8, length: Int) -> Element? {
        guard position + length <= block.count else {
            position = block.count
            return nil
        }
        defer { position += length }
        return Element(id: id, offset: offset + position, length: length)
    }
}
