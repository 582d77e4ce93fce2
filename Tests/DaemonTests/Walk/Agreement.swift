import JSON

/// Comparison of results with expectations, with placeholders for names that sfud chose.
///
/// A word such as `$stream-7` in an expectation stands for such a name: the first value in its
/// place becomes its meaning from then on, and nothing else has the same meaning (except requests
/// to change role: their names are their room's).
struct Agreement {
    private var meanings: [String: String] = [:]
    private var taken: Set<String> = []

    /// Returns params in which words without a meaning are `none`.
    func known(_ json: JSON) -> JSON {
        switch json {
        case .string(let word) where word.hasPrefix("$"): meanings[word] == nil ? "none" : json
        case .array(let list): .array(list.map(known))
        case .object(let members): .object(members.mapValues(known))
        case .string, .null, .bool, .number, .integer: json
        }
    }

    /// Returns the params with sfud's names in them.
    func resolved(_ json: JSON) -> JSON {
        switch json {
        case .string(let word): .string(meanings[word] ?? word)
        case .array(let list): .array(list.map(resolved))
        case .object(let members): .object(members.mapValues(resolved))
        default: json
        }
    }

    /// Whether `actual` matches `expected`; new meanings are kept only then.
    mutating func agree(_ expected: JSON, _ actual: JSON) -> Bool {
        var learnt: [String: String] = [:]
        guard match(expected, actual, &learnt) else { return false }
        for (word, name) in learnt {
            meanings[word] = name
            guard word.hasPrefix("$request") || taken.insert(name).inserted else { return false }
        }
        return true
    }

    private func match(
        _ expected: JSON,
        _ actual: JSON,
        _ learnt: inout [String: String]
    ) -> Bool {
        switch (expected, actual) {
        case (.string(let word), _) where word.hasPrefix("$"):
            return match(word: word, actual, &learnt)
        case (.array(let wanted), .array(let came)):
            guard wanted.count == came.count else { return false }
            for (wanted, came) in zip(wanted, came) {
                guard match(wanted, came, &learnt) else { return false }
            }
            return true
        case (.object(let wanted), .object(let came)):
            guard wanted.count == came.count else { return false }
            for (key, value) in wanted {
                guard let came = came[key], match(value, came, &learnt) else { return false }
            }
            return true
        default: return expected == actual
        }
    }

    /// Whether a number, or every member of an object or a list, is 0 or more.
    private func isNoNegative(_ json: JSON) -> Bool {
        switch json {
        case .number(let number): number >= 0
        case .integer(let number): number >= 0
        case .object(let members): members.values.allSatisfy(isNoNegative)
        case .array(let elements): elements.allSatisfy(isNoNegative)
        case .null, .bool, .string: false
        }
    }

    private func match(
        word: String,
        _ actual: JSON,
        _ learnt: inout [String: String]
    ) -> Bool {
        switch (word, actual) {
        case ("$any", _), ("$time", .number), ("$time", .integer): return true
        case ("$fence", .object(let fence)):
            return fence.keys.sorted() == ["packets", "time"] && fence["packets"] == 0
        case ("$session", .object(let session)):
            // The workers of the walk tell no quality, and no video of theirs freezes.
            return session.keys.sorted() == ["duration", "freezes", "received", "sent"]
                && session.values.allSatisfy(isNoNegative)
        case (_, .string(let name)):
            if let meaning = meanings[word] ?? learnt[word] { return meaning == name }
            guard !taken.contains(name) else { return false }
            learnt[word] = name
            return true
        default: return false
        }
    }
}
