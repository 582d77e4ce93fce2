import Contract
import JSON

/// One page of a list: it ends at the caller's limit or before its byte limit.
struct Page {
    /// Bytes of a page that is a whole result.
    static let byteLimit = 512 << 10

    private let limit: Int
    private let byteLimit: Int
    private var bytes: [UInt8] = [UInt8(ascii: "[")]
    private(set) var count = 0
    /// Cursor of the last element; the next page begins after it.
    private var last = ""
    private var isCut = false

    init(limit: PageLimit?, byteLimit: Int = Self.byteLimit) {
        self.limit = limit?.rawValue ?? PageLimit.range.upperBound
        self.byteLimit = byteLimit
    }

    /// Appends an encoded element.
    ///
    /// The first element always fits, so that a list never stands still.
    ///
    /// - Returns: `false` if the page is full; the list then goes on in the next one.
    mutating func append(_ text: [UInt8], cursor: String) -> Bool {
        guard count < limit, count == 0 || bytes.count + text.count < byteLimit else {
            isCut = true
            return false
        }
        if count > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes += text
        count += 1
        last = cursor
        return true
    }

    /// The elements as a JSON array.
    var list: EncodedJSON { EncodedJSON(bytes: bytes + [UInt8(ascii: "]")]) }

    /// `next` of the result; `nil` at the list's end.
    var next: String? { isCut ? last : nil }
}

/// Encodable form of a paged result, whose list is encoded already.
struct EncodedPage: Encodable {
    /// Name of the list.
    var name: String
    var page: Page

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: NamedKey.self)
        try container.encode(page.list, forKey: NamedKey(name))
        try container.encodeIfPresent(page.next, forKey: NamedKey("next"))
    }
}

extension Page {
    /// Makes a page of elements that are sorted by a number, from the one after `after`.
    ///
    /// - Throws: `-32602 invalid-params` for a cursor that is not such a number.
    static func numbered<Element>(
        _ elements: some Sequence<Element>,
        by number: (Element) -> UInt64,
        limit: PageLimit?,
        after: PageCursor?,
        encoded: (Element) -> [UInt8]
    ) throws(IPCError) -> Self {
        let start = try cursor(after)
        var page = Self(limit: limit)
        for element in elements where number(element) > start {
            let text = encoded(element)
            guard page.append(text, cursor: "\(number(element))") else { break }
        }
        return page
    }

    /// Parses a cursor that is a number; 0 for none.
    static func cursor(_ after: PageCursor?) throws(IPCError) -> UInt64 {
        guard let after else { return 0 }
        guard let number = UInt64(after.rawValue) else { throw .badCursor }
        return number
    }
}

extension IPCError {
    /// Refuses `after` that is not the `next` of an earlier page.
    static let badCursor = IPCError.invalidParameter(
        "after",
        "parameter \"after\" must be the \"next\" of an earlier page"
    )
}
