/// Kinds of invalid datagrams, by their names in `core-cost --hostile`.
enum HostileKind: String, CaseIterable {
    /// Datagrams of a kind in one run.
    static let burst = 64

    case unknownName = "a check with nobody's name"
    case guessedPassword = "a check with a guessed password"
    case garbage64 = "64 bytes from nobody"
    case garbage1200 = "1,200 bytes from nobody"
    case hello = "a hello from nobody"
    case badTag = "1,200 bytes of a sender, the tag wrong"
    case feedbackOfNothing = "feedback on 65,535 packets that were not there"
    case feedbackOfAll = "feedback on 1,300 packets"
    case helloOfOneFragment = "a hello, answered"
    case fragmentOfOneByte = "a hello's fragment of one byte"
    case emptyFragment = "a hello's empty fragment"
    case contradiction = "a hello's fragment that contradicts the one before"
}
