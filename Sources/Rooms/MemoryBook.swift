/// How much memory the process has taken, and whether there is some for somebody more.
///
/// Where memory ends the system ends the process, and with it every call: so who would need more
/// of it is refused before.
package struct MemoryBook: Sendable {
    /// In 2^20 bytes; 0: there is none.
    private let limitMegabytes: Int
    /// What the process has resident, in 2^20 bytes, as it was measured last.
    package var residentMegabytes = 0
    /// How many were turned away.
    package private(set) var refused: UInt64 = 0

    package init(limitMegabytes: Int) { self.limitMegabytes = limitMegabytes }

    /// Throws `4029 limit-reached` with the figures where there is no memory for more.
    package mutating func refuseMore() throws(Refusal) {
        guard limitMegabytes > 0, residentMegabytes >= limitMegabytes else { return }
        refused &+= 1
        throw .outOfMemory(limitMegabytes, resident: residentMegabytes)
    }
}
