import FoundationEssentials

/// Writes lines of the IPC: the envelope by hand, so that its members have one order.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func id(_ id: RequestID?) {
        switch id {
        case .integer(let integer): raw("\(integer)")
        case .string(let text): string(text)
        case nil: raw("null")
        }
    }

    mutating func number(_ number: Double) { raw(number.isFinite ? "\(number)" : "null") }

    mutating func string(_ text: String) { value(text) }

    mutating func value(_ value: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            bytes.append(contentsOf: try encoder.encode(value))
        } catch {
            preconditionFailure("a result that is no JSON: \(error)")
        }
    }
}
