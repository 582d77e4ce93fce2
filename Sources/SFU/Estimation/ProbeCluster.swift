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
struct ProbeCluster {
    /// Share of the probe's bytes that must have arrived.
    private static let enough = 0.8
    private static let fewestPackets = 4
    private static let longest: Int64 = 1_000_000_000
    /// Ratio of arrival to send rate below which the path is saturated, and the share of the
    /// arrival rate that is then used.
    private static let saturated = 0.9
    private static let utilization = 0.95

    let probe: Probe
    private var count = 0
    private var bytes = 0
    private var firstSent: Int64 = .max
    private var lastSent: Int64 = .min
    private var lastSentBytes = 0
    private var firstArrived: Int64 = .max
    private var firstArrivedBytes = 0
    private var lastArrived: Int64 = .min

    init(_ probe: Probe) { self.probe = probe }

    /// Starts over with the packets that are still to arrive.
    mutating func forgetArrivals() { self = ProbeCluster(probe) }

    /// Adds a packet of the probe that arrived.
    mutating func add(bytes size: Int, sent: Int64, arrived: Int64) {
        count &+= 1
        bytes &+= size
        firstSent = min(firstSent, sent)
        if sent >= lastSent {
            lastSent = sent
            lastSentBytes = size
        }
        if arrived < firstArrived {
            firstArrived = arrived
            firstArrivedBytes = size
        }
        lastArrived = max(lastArrived, arrived)
    }

    /// Measured rate in bits a second, once enough of the probe has arrived.
    var result: Double? {
        guard Double(bytes) >= Self.enough * Double(probe.bytes),
            count >= max(Self.fewestPackets, probe.minimumPackets * 4 / 5)
        else { return nil }
        let sending = lastSent &- firstSent
        let receiving = lastArrived &- firstArrived
        guard sending > 0, receiving > 0, sending <= Self.longest, receiving <= Self.longest else {
            return nil
        }
        // Between the first and the last of n packets, n-1 were transferred.
        let sendRate = Double(bytes &- lastSentBytes) * 8e9 / Double(sending)
        let receiveRate = Double(bytes &- firstArrivedBytes) * 8e9 / Double(receiving)
        guard receiveRate <= 2 * sendRate else { return nil }
        let rate = min(sendRate, receiveRate)
        return receiveRate < Self.saturated * sendRate ? Self.utilization * receiveRate : rate
    }
}
