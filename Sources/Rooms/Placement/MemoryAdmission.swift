/// Memory admission check of the process.
///
/// When memory runs out, the system kills the process and every call with it. Requests that need
/// more memory are refused before that.
package struct MemoryAdmission: Sendable {
    /// Limit of resident memory, in MiB (2^20 bytes); 0: none.
    private let limitMegabytes: Int
    /// Resident memory of the process at its last measurement, in MiB (2^20 bytes).
    package var residentMegabytes = 0
    /// Number of requests refused since the start.
    package private(set) var refused: UInt64 = 0

    package init(limitMegabytes: Int) { self.limitMegabytes = limitMegabytes }

    /// Throws `4029 limit-reached` with both figures if the limit is reached.
    package mutating func refuseMore() throws(CallError) {
        guard limitMegabytes > 0, residentMegabytes >= limitMegabytes else { return }
        refused &+= 1
        throw .outOfMemory(limitMegabytes, resident: residentMegabytes)
    }
}
