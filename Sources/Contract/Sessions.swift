/// Account of a participant's stay, in `participant.left`.
public struct SessionInfo: Codable, Hashable, Sendable {
    /// Seconds since it joined.
    public var duration: Double
    /// Media that it published.
    public var sent = SessionMedia()
    /// Media that it was subscribed to.
    public var received = SessionMedia()
    /// Freezes of the video that it received.
    public var freezes = SessionFreezes()
    /// Milliseconds; `nil` if it sent no report on media that it received.
    public var roundTripTime: MeanAndWorst?
    /// Estimate of what the path to it carries, in bits a second, whose worst is the lowest; `nil`
    /// if no limit was known at any report on media that it received.
    public var estimate: MeanAndWorst?

    public init(duration: Double) { self.duration = duration }
}

/// Media of one direction in a session.
///
/// Streams at the same time add up: ten cameras in one minute are ten minutes of video.
public struct SessionMedia: Codable, Hashable, Sendable {
    public var audioMinutes = 0.0
    /// Video of cameras.
    public var videoMinutes = 0.0
    public var screenMinutes = 0.0
    /// Share of packets lost, 0 to 1; `nil` without a report.
    public var fractionLost: MeanAndWorst?
    /// Milliseconds; `nil` without a report.
    public var jitter: MeanAndWorst?

    public init() {}
}

/// Times in which no new frame of a video reached the participant, as `subscription.explain` counts
/// them.
public struct SessionFreezes: Codable, Hashable, Sendable {
    public var count = 0
    public var seconds = 0.0
    /// The same by hop, without hops that have none.
    public var hops: [HopFreezes] = []

    public init() {}
}

/// Mean and worst of a figure over a session's RTCP reports.
public struct MeanAndWorst: Codable, Hashable, Sendable {
    public var mean: Double
    public var worst: Double

    public init(mean: Double, worst: Double) {
        self.mean = mean
        self.worst = worst
    }
}
