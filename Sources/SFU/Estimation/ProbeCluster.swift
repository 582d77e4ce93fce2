/// Identifier of a probe, which its packets carry from the pacer to `sent`.
package struct ProbeID: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// Value from 1 to 255; 0 means no probe.
    package var rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// Bandwidth probe: packets sent faster than the estimate to measure their arrival rate.
///
/// Queued media goes first and counts; padding makes up the rest. Packets should be no larger than
/// `bytes / minimumPackets`. The probe ends when both figures are reached.
package struct Probe: Equatable, Sendable {
    package var id: ProbeID
    /// Send rate in bits a second.
    package var bitsPerSecond: Int
    /// Least number of bytes to send, IP and UDP headers counted.
    package var bytes: Int
    package var minimumPackets: Int
}

/// Measurement of one probe's send and arrival rates.
///
/// The arrival rate is that of the line through all arrivals (least squares): on a path that
/// jitters, the first and the last one alone would tell little. The result is on the safe side of
/// the arrivals' scatter around the line.
struct ProbeCluster {
    /// Share of the probe's bytes that must have arrived.
    private static let enough = 0.8
    private static let fewestPackets = 4
    private static let longest: Int64 = 1_000_000_000
    /// Ratio of arrival to send rate below which the path is saturated, and the share of the
    /// arrival rate that is then used.
    private static let saturated = 0.9
    private static let utilization = 0.95
    /// Standard errors by which the result is on the safe side.
    private static let caution = 1.0

    let probe: Probe
    private var count = 0
    private var bytes = 0
    private var firstSent: Int64 = .max
    private var lastSent: Int64 = .min
    private var lastSentBytes = 0
    private var firstArrived: Int64?
    private var lastArrived: Int64 = .min
    private var line = ArrivalLine()

    init(_ probe: Probe) { self.probe = probe }

    /// Starts over with the packets that are still to arrive.
    mutating func forgetArrivals() { self = ProbeCluster(probe) }

    /// Adds a packet of the probe that arrived; packets come in the order in which they were sent.
    mutating func add(bytes size: Int, sent: Int64, arrived: Int64) {
        count &+= 1
        bytes &+= size
        firstSent = min(firstSent, sent)
        if sent >= lastSent {
            lastSent = sent
            lastSentBytes = size
        }
        let origin = firstArrived ?? arrived
        firstArrived = origin
        lastArrived = max(lastArrived, arrived)
        line.add(bytes: Double(bytes), time: Double(arrived &- origin))
    }

    /// Measurement, once enough of the probe has arrived.
    var result: ProbeResult? {
        guard Double(bytes) >= Self.enough * Double(probe.bytes),
            count >= max(Self.fewestPackets, probe.minimumPackets * 4 / 5), let firstArrived
        else { return nil }
        let sending = lastSent &- firstSent
        guard sending > 0, lastArrived &- firstArrived <= Self.longest, sending <= Self.longest,
            let (slope, error) = line.slope
        else { return nil }
        // Between the first and the last of n packets, n-1 were transferred.
        let sendRate = Double(bytes &- lastSentBytes) * 8e9 / Double(sending)
        guard 8e9 / slope <= 2 * sendRate else { return nil }
        let receiveRate = 8e9 / (slope + Self.caution * error)
        let isSaturated = receiveRate < Self.saturated * sendRate
        return ProbeResult(
            id: probe.id,
            rate: isSaturated ? Self.utilization * receiveRate : min(sendRate, receiveRate),
            doubt: Self.caution * error / slope
        )
    }
}

/// Result of one probe.
struct ProbeResult: BitwiseCopyable {
    var id: ProbeID
    /// Bits a second that the path carries.
    var rate: Double
    /// Share by which the arrivals' scatter leaves the rate open.
    var doubt: Double
}

/// Line through the arrivals of packets, by the bytes that have arrived with each.
private struct ArrivalLine {
    private var count = 0.0
    private var bytes = 0.0
    private var times = 0.0
    private var squaredBytes = 0.0
    private var products = 0.0
    private var squaredTimes = 0.0

    /// Adds the time, in nanoseconds, at which that many bytes in all had arrived.
    mutating func add(bytes total: Double, time: Double) {
        count += 1
        bytes += total
        times += time
        squaredBytes += total * total
        products += total * time
        squaredTimes += time * time
    }

    /// Nanoseconds for each byte, and the standard error of that; `nil` if there are too few
    /// packets, or all arrived at once.
    var slope: (slope: Double, error: Double)? {
        guard count >= 3 else { return nil }
        let byteSpread = squaredBytes - bytes * bytes / count
        let timeSpread = squaredTimes - times * times / count
        let joint = products - bytes * times / count
        guard byteSpread > 0, joint > 0 else { return nil }
        let slope = joint / byteSpread
        let scatter = max(0, timeSpread - slope * joint)
        return (slope, (scatter / (count - 2) / byteSpread).squareRoot())
    }
}
