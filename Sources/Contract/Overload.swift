/// What a worker gives up while it has more to do than it can; each step holds those before it.
///
/// Sound is on no step: it goes on as long as the worker does.
public enum OverloadStep: String, Codable, Hashable, Sendable, CaseIterable {
    case none
    /// Nobody new is let in.
    case joins
    /// Some videos are sent in their lowest layer alone.
    case layers
    /// Some videos are not sent at all.
    case video
}

/// How hard pressed a worker is.
public struct PressureInfo: Codable, Hashable, Sendable {
    public var step: OverloadStep
    /// The share of the last seconds in which its thread was at work, or wanted to be: 0 to 1.
    public var busy: Double
    /// How long what comes waits at least, in milliseconds.
    public var lagMilliseconds: Int
    /// What it keeps of the bits that all videos together would take, 0 to 1.
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

/// A worker gives up more than before, or less.
///
/// It is of no room: its line has no `room` and no `seq`, and every connection that hears events
/// hears it.
public struct ServerOverload: EventData {
    public static let event = "server.overload"
    public var worker: Int
    /// The step before, and the one from now on.
    public var from: OverloadStep
    public var step: OverloadStep
    public var busy: Double
    public var lagMilliseconds: Int
    public var videoKept: Double

    public init(worker: Int, from: OverloadStep, now pressure: PressureInfo) {
        self.worker = worker
        self.from = from
        step = pressure.step
        busy = pressure.busy
        lagMilliseconds = pressure.lagMilliseconds
        videoKept = pressure.videoKept
    }
}
