/// Outcome of one check of `sfuctl doctor`.
struct Finding: Hashable, Encodable {
    enum State: String, Encodable {
        case ok
        /// It works, and something is worth a change.
        case warning
        /// It does not work, or will not.
        case fault
    }

    var check: String
    var state: State
    var text: String
    /// Advice; for a result that is `ok`, what to keep in mind.
    var advice: String?

    static func ok(_ check: String, _ text: String, _ advice: String? = nil) -> Self {
        Self(check: check, state: .ok, text: text, advice: advice)
    }

    static func warning(_ check: String, _ text: String, _ advice: String? = nil) -> Self {
        Self(check: check, state: .warning, text: text, advice: advice)
    }

    static func fault(_ check: String, _ text: String, _ advice: String? = nil) -> Self {
        Self(check: check, state: .fault, text: text, advice: advice)
    }
}

extension Report {
    /// Formats findings one a line, advice on the line below.
    static func findings(_ findings: [Finding]) -> String {
        var table = Table([("STATE", .left), ("CHECK", .left), ("FINDING", .left)])
        for finding in findings {
            table.add([finding.state.rawValue, finding.check, finding.text])
            if let advice = finding.advice { table.add(["", "", "  \(advice)"]) }
        }
        let faults = findings.count { $0.state == .fault }
        let warnings = findings.count { $0.state == .warning }
        return "\(table.text)\n\nfaults: \(faults), warnings: \(warnings)"
    }
}
