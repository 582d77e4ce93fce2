internal import COpenSSL
import RTP
import WorkerInterface

/// State that a transport leaves to the next process, stored as soon as it changes.
///
/// Packet indexes and transport-wide numbers need no store of their own: they lie in saved memory.
extension Transports {
    /// Makes the record of a transport whose keys are agreed.
    ///
    /// - Returns: The place at which its session stores the indexes that it uses; `nil` if nothing
    ///   is saved.
    mutating func save(
        keysOf transport: TransportIndex,
        _ profile: SRTPProfile,
        _ keys: SRTPKeys
    ) -> SavedPlace? {
        guard savesState else { return nil }
        forgetSaved(transport)
        var record = SavedTransport()
        record.profile = profile.rawValue
        record.ssrc = transports[transport].ssrc.rawValue
        let (local, remote) = (keys.local, keys.remote)
        for index in local.indices { record.keys[index] = local[index] }
        for index in remote.indices { record.keys[local.count + index] = remote[index] }
        saved.insert(record, at: transports[transport].id)
        Self.wipe(&record)
        return unsafe SavedPlace(saved.address(of: transport))
    }

    /// Stores the paths, the selected one, and the peer's consent.
    mutating func savePaths(of transport: TransportIndex) {
        guard savesState, saved.isOccupied(transport) else { return }
        var count = 0
        var selected = UInt8.max
        for path in transports[transport].ice.paths
        where !path.isConnection && count < SavedTransport.pathLimit {
            if path == transports[transport].path { selected = UInt8(count) }
            saved[transport].paths[count] = SavedTransport.Path(
                high: path.remote.high,
                low: path.remote.low,
                port: path.remote.port,
                local: path.local
            )
            count += 1
        }
        saved[transport].pathCount = UInt8(count)
        saved[transport].selected = selected
        let consent = transports[transport].consent
        let hasConsent = consent.path != nil && consent.path == transports[transport].path
        saved[transport].consentGiven = hasConsent ? consent.given.nanoseconds : .min
    }

    /// Stores the estimate of the path, in bits a second; `nil` if no limit is known.
    mutating func save(estimate: Int?, of transport: TransportIndex) {
        guard savesState, saved.isOccupied(transport) else { return }
        saved[transport].estimate = Int64(estimate ?? 0)
    }

    /// Stores the encoding that each incoming SSRC is bound to.
    mutating func save(
        _ bindings: borrowing UncountedArray<SavedTransport.Binding>,
        of transport: TransportIndex
    ) {
        guard savesState, saved.isOccupied(transport) else { return }
        let count = min(bindings.count, SavedTransport.streamLimit)
        for index in 0..<count { saved[transport].bindings[index] = bindings[index] }
        saved[transport].bindingCount = UInt8(count)
    }

    /// Returns the highest SRTP index that was accepted of an incoming SSRC, as saved.
    func savedIndex(of ssrc: SSRC, _ transport: TransportIndex) -> UInt64? {
        guard savesState, saved.isOccupied(transport) else { return nil }
        let count = min(Int(saved[transport].streamCount), SavedTransport.streamLimit)
        for index in 0..<count where saved[transport].streams[index].ssrc == ssrc.rawValue {
            return saved[transport].streams[index].rtpNewest
        }
        return nil
    }

    /// Removes the record of a transport that has ended, keys first.
    mutating func forgetSaved(_ transport: TransportIndex) {
        guard savesState, saved.isOccupied(transport) else { return }
        Self.wipe(&saved[transport])
        _ = saved.remove(at: transport)
    }

    private static func wipe(_ record: inout SavedTransport) {
        unsafe withUnsafeMutableBytes(of: &record) { bytes in
            unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        }
    }
}
