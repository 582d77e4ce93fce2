/// Load-shedding level of an overloaded worker; each level includes those before it.
///
/// Audio is never shed.
public enum OverloadStep: String, Codable, Hashable, Sendable, CaseIterable {
    case none
    /// New participants are refused.
    case joins
    /// Some videos are sent in their lowest layer only.
    case layers
    /// Some videos are not sent at all.
    case video
}

/// Load of a worker.
public struct OverloadInfo: Codable, Hashable, Sendable {
    public var step: OverloadStep
    /// Share of the last seconds in which the worker's thread ran or was ready to run: 0 to 1.
    public var busy: Double
    /// Least time that received datagrams wait, in milliseconds.
    public var lagMilliseconds: Int
    /// Share of the bitrate of all videos together that the worker still sends: 0 to 1.
    public var videoKept: Double

    public init(
        step: OverloadStep = .none,
        busy: Double = 0,
        lagMilliseconds: Int = 0,
        videoKept: Double = 1
    ) {
        self.step = step
        self.busy = busy
        self.lagMilliseconds = lagMilliseconds
        self.videoKept = videoKept
    }
}

/// `server.overload`: a worker sheds more or less load than before.
///
/// It belongs to no room: its line has no `room` and no `seq`, and it is sent to every connection
/// that receives events.
public struct ServerOverload: EventData {
    public static let event = "server.overload"
    public var worker: Int
    /// The level before and the level now.
    public var previous: OverloadStep
    public var current: OverloadStep
    public var busy: Double
    public var lagMilliseconds: Int
    public var videoKept: Double

    public init(worker: Int, previous: OverloadStep, now pressure: OverloadInfo) {
        self.worker = worker
        self.previous = previous
        current = pressure.step
        busy = pressure.busy
        lagMilliseconds = pressure.lagMilliseconds
        videoKept = pressure.videoKept
    }
}
