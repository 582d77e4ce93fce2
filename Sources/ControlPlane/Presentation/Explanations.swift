import Contract
import RTP
import Rooms
import WorkerInterface

// Explanations of `subscription.explain`.

extension SubscriptionExplain.Result {
    /// Merges the control plane's reasons with the worker's.
    ///
    /// The control plane's come first: if they disable the video, more bandwidth would not help.
    init(
        explaining subscription: Room.Subscription,
        of stream: Room.Stream,
        isAdmitted: Bool,
        _ found: LayerExplanation?,
        unixTime: (Instant) -> Double
    ) {
        let offered = (found?.offered ?? stream.layers).map(LayerInfo.init)
        let names = found?.names ?? []
        let sent = subscription.videoDisabled == nil && isAdmitted ? found?.sent : nil
        let limit: LayerLimitReason =
            isAdmitted
            ? LayerLimitReason(subscription.videoDisabled, found)
                ?? LayerLimitReason(found?.limit ?? .none) : .approval
        self.init(
            sent: sent.map(SentLayer.init),
            offered: offered,
            preference: LayerPreference(subscription.preferences),
            estimate: found?.estimate,
            share: found?.share ?? 0,
            limit: limit,
            needed: found?.needed,
            retryAt: (found?.retryAt).map(unixTime),
            decisions: (found?.decisions ?? []).map { decision in
                LayerSwitch(
                    time: unixTime(decision.at),
                    previous: decision.from.map { SwitchedLayer($0, among: names) },
                    current: decision.to.map { SwitchedLayer($0, among: names) },
                    cause: LayerLimitReason(decision.cause)
                )
            },
            freezes: found.map { SubscriptionFreezes($0.freezes, unixTime: unixTime) }
        )
        advice = limit.advice(needed: needed, isTriedAgain: retryAt != nil)
    }
}

extension LayerLimitReason {
    init(_ limit: LayerLimit) {
        self =
            switch limit {
            case .none: .none
            case .preference: .preference
            case .role: .role
            case .bandwidth: .bandwidth
            case .publisher: .publisher
            case .overload: .overload
            case .link: .link
            }
    }

    /// Makes the word for a disabled video; `nil` if the video is enabled.
    fileprivate init?(_ reason: Room.DisableReason?, _ found: LayerExplanation?) {
        switch reason {
        case .publisher, .interrupted: self = .publisher
        case .subscriber: self = .subscriber
        case .quality:
            switch found?.limit {
            case .overload: self = .overload
            case .link: self = .link
            case .none?, .preference, .role, .bandwidth, .publisher, nil: self = .bandwidth
            }
        case .codec: self = .codec
        case .muted: self = .muted
        case .role: self = .role
        case nil: return nil
        }
    }

    /// Returns the change that would let the subscriber be sent more.
    fileprivate func advice(needed: Int?, isTriedAgain: Bool) -> String? {
        switch self {
        case .none: nil
        case .preference: "the subscriber must prefer a higher resolution or frame rate"
        case .role: "a role must allow a higher layer"
        case .bandwidth:
            if isTriedAgain {
                "a higher layer was too much of late, and is tried again later"
            } else if let needed {
                "the estimate must reach \(needed) bit/s"
            } else {
                "the estimate must rise"
            }
        case .publisher: "the publisher must send a higher layer"
        case .overload: "the server must have less to do"
        case .link: "the link between two of the servers must carry more"
        case .approval: "the subscriber must be let in"
        case .muted: "a moderator must unmute the publisher"
        case .subscriber: "the subscriber must switch its video on"
        case .codec: "the publisher must use a codec that the subscriber can decode"
        }
    }
}

extension LayerPreference {
    fileprivate init(_ preferences: Room.Preferences) {
        var resolution: Resolution?
        if let width = preferences.width, let height = preferences.height {
            resolution = Resolution(width: width, height: height)
        }
        self.init(
            resolution: resolution,
            frameRate: preferences.frameRate,
            priority: preferences.priority
        )
    }
}

extension SentLayer {
    fileprivate init(_ layer: LayerDescription) {
        self.init(
            rid: layer.rid,
            width: layer.width,
            height: layer.height,
            frameRate: layer.frameRate,
            bitrate: layer.bitrate
        )
    }
}

extension SwitchedLayer {
    fileprivate init(_ layer: LayerDecision.Layer, among names: [String?]) {
        let position = Int(layer.position)
        self.init(
            rid: names.indices.contains(position) ? names[position] : nil,
            width: Int(layer.width),
            height: Int(layer.height),
            frameRate: Int(layer.frameRate)
        )
    }
}
