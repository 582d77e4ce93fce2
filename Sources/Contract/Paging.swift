import JSON

/// Most elements of a page: 1 to 1,000; 1,000 by default.
///
/// A page may end earlier, before 512 KiB.
public struct PageLimit: Codable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    public static let range = 1...1_000
    public var rawValue: Int

    public init(_ rawValue: Int) { self.rawValue = rawValue }
    public init(integerLiteral value: Int) { rawValue = value }

    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(Int.self)
        guard Self.range.contains(rawValue) else {
            throw decoder.refusal("must be 1 to \(Self.range.upperBound)")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// Place in a list where the next page begins: the `next` of the page before.
public typealias PageCursor = ShortText

/// Params of a method that returns a list page by page.
public protocol PagedParams: Codable, Hashable, Sendable {
    var limit: PageLimit? { get set }
    var after: PageCursor? { get set }
}

/// A page of a list.
public protocol PagedResult: Codable, Hashable, Sendable {
    associatedtype Element: Sendable
    var page: [Element] { get }
    /// Cursor of the next page; `nil` at the end of the list.
    var next: PageCursor? { get }
}
