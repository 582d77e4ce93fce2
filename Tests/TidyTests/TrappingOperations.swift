/// Counter of the operations that can trap in each declaration of a Swift file, by its text alone.
///
/// Types are unknown. So floating-point arithmetic counts too, and so does the subscript of a
/// dictionary; literals tell enough to exclude `x * 0.5`, `2 * 3` and `0...15`.
struct TrappingOperations {
    /// Number of operations of each kind, by declaration: `BandwidthEstimator.noteLosses`.
    private(set) var counts: [String: [TrapKind: Int]] = [:]
    /// Lines of the operations, to print.
    private(set) var lines: [String: [TrapKind: [Int]]] = [:]

    /// Names that need no bound of their own, `[slots]` and `Int(slot)`; below, those that
    /// occurred.
    private let known: Set<String>
    private(set) var met: Set<String> = []

    private let tokens: [SwiftToken]
    private var scopes: [Scope] = []
    /// The type or member whose opening brace has not been read.
    private var pending: Scope?

    private struct Scope {
        enum Kind { case type, member, block }

        var kind: Kind
        var name: String
    }

    init(in text: String, knowing known: Set<String> = []) {
        self.known = known
        tokens = SwiftTokenizer.tokens(of: text)
        var index = 0
        while index < tokens.count {
            readDeclaration(index)
            if let kind = trap(at: index), !isKnown(kind, at: index) {
                note(kind, tokens[index].line)
            }
            index = afterAttribute(index) ?? index + 1
        }
    }

    private mutating func isKnown(_ kind: TrapKind, at index: Int) -> Bool {
        let name: String
        switch kind {
        case .subscript: name = "[\(text(index - 1))]"
        case .conversion:
            guard let argument = argument(at: index + 1) else { return false }
            name = "\(text(index))(\(argument))"
        default: return false
        }
        guard known.contains(name) else { return false }
        met.insert(name)
        return true
    }

    /// Returns the last name of `(a.b[c].d)` or of `(a.d[c])`, if there are only names.
    private func argument(at open: Int) -> String? {
        var index = open + 1
        var name: String?
        while index < tokens.end(ofGroupAt: open) {
            switch text(index) {
            case "[": index = tokens.end(ofGroupAt: index)
            case ".", "?": break
            default:
                guard tokens[index].kind == .word else { return nil }
                name = text(index)
            }
            index += 1
        }
        return name
    }

    private mutating func note(_ kind: TrapKind, _ line: Int) {
        let name = declaration
        counts[name, default: [:]][kind, default: 0] += 1
        lines[name, default: [:]][kind, default: []].append(line)
    }

    /// The innermost types and the outermost member in them.
    private var declaration: String {
        var path = scopes.filter { $0.kind == .type }.map(\.name)
        if let member = scopes.first(where: { $0.kind == .member }) ?? pending {
            path.append(member.name)
        }
        return path.joined(separator: ".")
    }

    private func token(_ index: Int) -> SwiftToken? {
        tokens.indices.contains(index) ? tokens[index] : nil
    }

    private func text(_ index: Int) -> String { token(index)?.text ?? "" }

    /// Skips the arguments of an attribute, which are not code.
    private func afterAttribute(_ index: Int) -> Int? {
        guard text(index) == "@", text(index + 2) == "(", token(index + 2)?.followsSpace == false
        else { return nil }
        return tokens.end(ofGroupAt: index + 2) + 1
    }
}

// Declarations.

extension TrappingOperations {
    private mutating func readDeclaration(_ index: Int) {
        switch text(index) {
        case "{":
            let isMember = scopes.contains { $0.kind == .member }
            scopes.append((isMember ? nil : pending) ?? Scope(kind: .block, name: ""))
            if !isMember { pending = nil }
        case "}":
            if scopes.popLast()?.kind == .type { pending = nil }
        default:
            let isInside = scopes.contains { $0.kind == .member }
            if !isInside, text(index - 1) != ".", let scope = declared(at: index) {
                pending = scope
            }
        }
    }

    private func declared(at index: Int) -> Scope? {
        let next = text(index + 1)
        switch text(index) {
        case "struct", "enum", "actor", "protocol", "extension":
            return Scope(kind: .type, name: typeName(at: index + 1))
        case "class":
            let isModifier = ["func", "var", "let", "subscript"].contains(next)
            return isModifier ? nil : Scope(kind: .type, name: typeName(at: index + 1))
        case "func", "var", "let", "case":
            return Scope(kind: .member, name: next)
        case "init", "deinit", "subscript":
            return Scope(kind: .member, name: text(index))
        default:
            return nil
        }
    }

    private func typeName(at start: Int) -> String {
        var name = text(start)
        var index = start + 1
        while text(index) == "." {
            name += "." + text(index + 1)
            index += 2
        }
        return name
    }
}

// Operations.

extension TrappingOperations {
    private func trap(at index: Int) -> TrapKind? {
        guard let token = token(index) else { return nil }
        return switch (token.kind, token.text) {
        case (.symbol, "+"), (.symbol, "*"), (.symbol, "-"): arithmetic(index)
        case (.symbol, "+="), (.symbol, "-="), (.symbol, "*="): constant(index) ? nil : .arithmetic
        case (.symbol, "/"), (.symbol, "%"): constant(index) ? nil : division(index)
        case (.symbol, "/="), (.symbol, "%="): constant(index) ? nil : division(index)
        case (.symbol, "..<"), (.symbol, "..."): range(index)
        case (.symbol, "["): isSubscript(index) ? .subscript : nil
        case (.symbol, "!"): isPostfix(index) ? .unwrap : nil
        case (.word, _): call(index)
        default: nil
        }
    }

    private func arithmetic(_ index: Int) -> TrapKind? {
        let hasOperand = endsOperand(index - 1)
        let clings = token(index + 1)?.followsSpace == false
        let isPrefix = !hasOperand || (tokens[index].followsSpace && clings)
        if isPrefix {
            let isNegation = text(index) == "-" && token(index + 1)?.kind != .number
            return isNegation && text(index - 1) != "func" ? .arithmetic : nil
        }
        return constant(index) ? nil : .arithmetic
    }

    /// Whether both operands are known: two literals, or one with a decimal point.
    private func constant(_ index: Int) -> Bool {
        guard let left = token(index - 1), let right = token(index + 1) else { return true }
        if isOfLiterals(index) { return true }
        if left.kind == .string || right.kind == .string { return true }
        return [left, right].contains { isFloat($0) } || ["Double", "Float"].contains(right.text)
    }

    /// Whether an operator belongs to a chain of literals, which the compiler evaluates.
    private func isOfLiterals(_ index: Int) -> Bool {
        for step in [-1, 1] {
            var operand = index + step
            while true {
                guard token(operand)?.kind == .number else { return false }
                guard Self.operators.contains(text(operand + step)) else { break }
                operand += 2 * step
            }
        }
        return true
    }

    private func isFloat(_ token: SwiftToken) -> Bool {
        token.kind == .number && (token.text.contains(".") || token.text.contains("e"))
            && !token.text.hasPrefix("0x")
    }

    /// Returns the kind of a division; division by a literal other than 0 and −1 cannot trap.
    private func division(_ index: Int) -> TrapKind? {
        token(index + 1)?.kind == .number && text(index + 1) != "0" ? nil : .division
    }

    private func endsOperand(_ index: Int) -> Bool {
        guard let token = token(index) else { return false }
        switch token.kind {
        case .word: return !Self.keywords.contains(token.text)
        case .number, .string: return true
        case .symbol: return [")", "]", "}", "!", "?"].contains(token.text)
        }
    }

    private static let keywords: Set = [
        "return", "in", "case", "if", "guard", "else", "where", "while", "switch", "try", "throw",
        "inout", "consume", "copy", "unsafe", "func", "is", "as", "let", "var", "default",
    ]

    private func isSubscript(_ index: Int) -> Bool {
        guard !tokens[index].followsSpace, endsOperand(index - 1) else { return false }
        // `counts[key, default: 0]` is a dictionary's.
        let inside = tokens[index..<min(tokens.end(ofGroupAt: index), tokens.count)]
        let isDictionary = zip(inside, inside.dropFirst()).contains {
            $0.text == "default" && $1.text == ":"
        }
        return !isDictionary && inside.count > 1 && !isWalk(index)
    }

    /// Whether it is `x[i]` in `for i in x.indices` or `for i in 0..<x.count`, while x does not
    /// shrink.
    private func isWalk(_ index: Int) -> Bool {
        guard text(index + 2) == "]" else { return false }
        var start = index - 1
        while [".", "]"].contains(text(start)) || text(start - 1) == "." {
            start = text(start) == "]" ? tokens.start(ofGroupTo: start) - 1 : start - 1
        }
        let base = tokens[start..<index].map(\.text)
        let opening = ["for", text(index + 1), "in"]
        let begin = tokens[..<index].lastIndex { $0.text == "func" || $0.text == "init" } ?? 0
        let heads = [
            opening + base + [".", "indices"], opening + ["0", "..<"] + base + [".", "count"],
        ]
        let loop = (begin..<index).last { place in
            heads.contains { tokens[place...].lazy.map(\.text).starts(with: $0) }
        }
        guard let loop, let body = (loop..<tokens.count).first(where: { text($0) == "{" }),
            tokens.end(ofGroupAt: body) > index
        else { return false }
        return !(loop..<index).contains { place in
            text(place).hasPrefix("remove")
                && tokens[..<place].dropLast().suffix(base.count).map(\.text) == base
        }
    }

    private func isPostfix(_ index: Int) -> Bool {
        if ["try", "as"].contains(text(index - 1)) { return !tokens[index].followsSpace }
        return !tokens[index].followsSpace && endsOperand(index - 1)
    }

    private func range(_ index: Int) -> TrapKind? {
        let isTwoSided = endsOperand(index - 1) && startsOperand(index + 1)
        guard isTwoSided, tokens[index].followsSpace == token(index + 1)?.followsSpace else {
            return nil
        }
        let isOfLiterals = token(index - 1)?.kind == .number && token(index + 1)?.kind == .number
        return isOfLiterals && text(index + 2) != "." || isCount(index) ? nil : .range
    }

    private func startsOperand(_ index: Int) -> Bool {
        guard let token = token(index) else { return false }
        return token.kind != .symbol || ["(", "-", "."].contains(token.text)
    }

    /// Whether it is `0..<bytes.count` without arithmetic on the count.
    private func isCount(_ index: Int) -> Bool {
        guard text(index - 1) == "0", text(index - 2) != "-", text(index) == "..<" else {
            return false
        }
        var last = index + 1
        while text(last + 1) == "." || text(last + 1) == "[" {
            last = text(last + 1) == "." ? last + 2 : tokens.end(ofGroupAt: last + 1)
        }
        return text(last) == "count" && !Self.operators.contains(text(last + 1))
            && text(last + 1) != "("
    }

    private static let operators: Set = [
        "+", "-", "*", "/", "%", "&+", "&-", "&*", "<<", ">>", ".",
    ]

    private func call(_ index: Int) -> TrapKind? {
        if Self.integers.contains(text(index)), text(index + 1) == ".", text(index + 2) == "init" {
            return .conversion
        }
        guard text(index + 1) == "(", token(index + 1)?.followsSpace == false,
            text(index - 1) != "func"
        else { return nil }
        let word = text(index)
        let isLiteral = token(index + 2)?.kind == .number && text(index + 3) == ")"
        let label = text(index + 3) == ":" ? text(index + 2) : ""
        let isOfLiteral = token(index + 4)?.kind == .number && text(index + 5) == ")"
        if Self.integers.contains(word) {
            let isSafe = Self.safeLabels.contains(label) || isLiteral || isWidening(index)
            return isSafe ? nil : .conversion
        }
        switch word {
        case "abs": return .arithmetic
        case "numericCast": return .conversion
        case "quotientAndRemainder": return isConstantDivisor(index) ? nil : .division
        case "index" where text(index - 1) == ".": return .subscript
        case "_mutatingExtracting", "extracting", "prefix", "suffix", "dropFirst", "dropLast":
            let isCounted = !isLiteral && !(isOfLiteral && label != "") && text(index + 2) != ")"
            return label == "while" || !isCounted ? nil : .slice
        case "removeFirst", "removeLast": return text(index - 1) == "." ? .removal : nil
        case "remove" where label == "at" || label == "swappingAt": return .removal
        case "insert"
        where tokens[index..<tokens.end(ofGroupAt: index + 1)].map(\.text).contains("at"):
            return .removal
        case "swapAt", "removeSubrange", "replaceSubrange": return .removal
        case "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError":
            return .precondition
        default: return nil
        }
    }

    /// Whether it is `Int(UInt8(…))`, `Int(bytes.u16(at: …))` or `UInt8(byte & 0x7f)`.
    private func isWidening(_ index: Int) -> Bool {
        let end = tokens.end(ofGroupAt: index + 1)
        let inside = tokens[index + 2..<min(end, tokens.count)]
        let width = Self.width(text(index))
        if let open = inside.firstIndex(where: { $0.text == "(" }),
            tokens.end(ofGroupAt: open) == end - 1,
            tokens[index + 2..<open].allSatisfy({ $0.kind == .word || $0.text == "." }),
            Self.width(text(open - 1)) < width
        {
            return true
        }
        let isMasked =
            inside.dropLast().last?.text == "&" && inside.last?.kind == .number
            && !inside.contains { ["+", "-", "*", "|", "^", "&+", "&-"].contains($0.text) }
        return isMasked && Self.value(text(end - 1)) < 128
    }

    /// Returns the bits of a non-negative integer type; for signed types 128 less one.
    private static func width(_ name: String) -> Int {
        switch name {
        case "UInt8": 8
        case "UInt16", "u16": 16
        case "u24": 24
        case "UInt32", "u32": 32
        case "Int", "Int64", "UInt64", "UInt": 63
        default: 128
        }
    }

    private static func value(_ literal: String) -> Int {
        let digits = literal.filter { $0 != "_" }
        let isHexadecimal = digits.hasPrefix("0x")
        return Int(
            isHexadecimal ? digits.dropFirst(2) : digits[...],
            radix: isHexadecimal ? 16 : 10
        )
            ?? .max
    }

    private func isConstantDivisor(_ index: Int) -> Bool {
        token(index + 4)?.kind == .number && text(index + 5) == ")"
    }

    private static let integers: Set = [
        "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64",
    ]
    private static let safeLabels: Set = [
        "truncatingIfNeeded", "clamping", "exactly", "bitPattern", "saturating", "ascii",
    ]
}
