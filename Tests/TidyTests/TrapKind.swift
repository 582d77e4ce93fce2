/// A kind of operation that ends the process when its operands are out of bounds.
enum TrapKind: String, CaseIterable, Comparable {
    /// `+ - *`, also with `=`, and `-x`, `abs(x)`.
    case arithmetic
    /// `/ %`, also with `=`, unless it is by a literal; `quotientAndRemainder`.
    case division
    /// `Int(x)` and the like, unless it truncates, clamps, is failable, reinterprets or plainly
    /// widens.
    case conversion
    /// `x[i]`, unless in `for i in x.indices`; `x.index(after: i)` and the like.
    case `subscript`
    /// `a..<b` and `a...b`, unless of literals or `0..<x.count`.
    case range
    /// `extracting`, `prefix`, `dropFirst` and the like by a computed count.
    case slice
    /// `removeFirst()`, `remove(at:)`, `insert(_:at:)` and the like.
    case removal
    /// `precondition`, `assert` and the like.
    case precondition
    /// `x!`, `try!` and `as!`.
    case unwrap

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
