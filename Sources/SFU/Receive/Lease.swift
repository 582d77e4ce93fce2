/// Lease under which a publication's gate may be open: its room's home is another node.
///
/// When the home is not heard in time, the gate closes by itself, so a node that has been cut off
/// or has stood still forwards nothing that has been forbidden meanwhile.
struct Lease: BitwiseCopyable {
    /// Number of the home, among those that this node serves.
    var home: UInt8
    /// Number of the home that takes its place.
    var next: UInt8?
    /// Whether the gate is closed because the lease is over.
    var hasLapsed = false
    /// Whether the home wants the gate to be open when the lease goes on.
    var isWantedOpen = false

    init(of home: UInt8) { self.home = home }
}
