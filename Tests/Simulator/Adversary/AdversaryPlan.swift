import TestSupport

/// An adversary's goal for a while, and its method.
package enum AdversaryPlan: String, CaseIterable {
    case clockSteps = "clock-steps"
    case feedbackFields = "feedback-fields"
    case reportFields = "report-fields"
    case clocksApart = "clocks-apart"
    case requests
    case reportFlood = "report-flood"
    case mediaFields = "media-fields"
    case newSources = "new-sources"
    case spoofedNomination = "spoofed-nomination"
    case silentNomination = "silent-nomination"
    case absentReceiver = "absent-receiver"
    case othersAddress = "others-address"
    case manyAddresses = "many-addresses"
    case checkFields = "check-fields"
    case offers
    case records
    case toggleFollowing = "come-and-go"

    /// The goal, in a few words.
    var text: String {
        switch self {
        case .clockSteps: "overflow the viewer's clock with maximal steps of the reference time"
        case .feedbackFields: "upset the bandwidth estimate with any field of its feedback"
        case .reportFields: "upset loss, round trip and lip sync with any field of the reports"
        case .clocksApart: "set two streams' clocks years apart, at the ends of NTP time"
        case .requests: "make others send keyframes and retransmissions without end"
        case .reportFlood: "take the worker's time with 5,000 datagrams of RTCP a second"
        case .mediaFields: "upset viewers and numbering with any field of a media packet"
        case .newSources: "fill tables with SSRCs and payload types that nobody agreed on"
        case .spoofedNomination: "send media to an address that never asked, by packets from there"
        case .silentNomination: "send media to an address that never asked, by keeping silent"
        case .absentReceiver: "have media go on to where it has been, and is no more"
        case .othersAddress: "take over the address of another participant"
        case .manyAddresses: "fill tables with addresses"
        case .checkFields: "upset ICE with roles, attributes and passwords"
        case .offers: "offer anew without end, with other slots and ICE credentials"
        case .records: "end or confuse the DTLS association with records of any kind"
        case .toggleFollowing: "be sent the same sound twice, by following, leaving and pinning"
        }
    }

    /// Number of messages of a plan, and their timing.
    struct Pace {
        var messages: Int
        /// Messages sent at once.
        var burst: Int
        var milliseconds: Int64
    }

    /// Draws the pace of one attempt; a long one has up to 100,000 messages.
    func pace(using random: inout SeededRandom) -> Pace {
        var pace = usualPace
        if self == .clockSteps, random.chance(0.5) {
            // Slow enough to stay below any limit of reports a second.
            pace = Pace(messages: 20_000, burst: 4, milliseconds: 50)
        }
        if random.chance(0.06), pace.messages > 1_000 {
            pace.messages = min(100_000, pace.messages * 20)
        }
        return pace
    }

    private var usualPace: Pace {
        switch self {
        case .clockSteps: Pace(messages: 20_000, burst: 9, milliseconds: 10)
        case .feedbackFields: Pace(messages: 1_500, burst: 8, milliseconds: 20)
        case .reportFields: Pace(messages: 1_500, burst: 8, milliseconds: 20)
        case .clocksApart: Pace(messages: 200, burst: 2, milliseconds: 20)
        case .requests: Pace(messages: 1_500, burst: 8, milliseconds: 20)
        case .reportFlood: Pace(messages: 10_000, burst: 50, milliseconds: 10)
        case .mediaFields: Pace(messages: 2_000, burst: 8, milliseconds: 10)
        case .newSources: Pace(messages: 1_500, burst: 5, milliseconds: 10)
        case .spoofedNomination: Pace(messages: 60, burst: 1, milliseconds: 100)
        case .silentNomination: Pace(messages: 40, burst: 1, milliseconds: 500)
        case .absentReceiver: Pace(messages: 100, burst: 1, milliseconds: 500)
        case .othersAddress: Pace(messages: 80, burst: 1, milliseconds: 100)
        case .manyAddresses: Pace(messages: 1_200, burst: 6, milliseconds: 20)
        case .checkFields: Pace(messages: 1_200, burst: 5, milliseconds: 20)
        case .offers: Pace(messages: 200, burst: 1, milliseconds: 30)
        case .records: Pace(messages: 1_200, burst: 5, milliseconds: 20)
        case .toggleFollowing: Pace(messages: 300, burst: 1, milliseconds: 15)
        }
    }
}

/// Rooms of a history that have an adversary.
package enum AdversaryChoice: String {
    case never
    /// An adversary in each room, in half of all seeds.
    case some
    case always
}
