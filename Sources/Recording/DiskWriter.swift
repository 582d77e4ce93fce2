import CKernel
import Foundation
import Glibc
package import Kernel
package import RTP
package import WorkerInterface

/// Limits of recordings; each is a configuration key.
package struct RecordingLimits: Hashable, Sendable {
    /// Bytes of one recording on disk; exceeding them ends it.
    package var bytes = 1 << 40
    /// Free bytes to leave on the file system; recordings end when fewer are left.
    package var freeBytes = 64 << 20
    /// Bytes of one recording queued for the disk; exceeding them for half a second ends it.
    package var waitingBytes = 16 << 20
    /// Files of one recording; at the limit tracks are dropped, and the recording ends if a track
    /// without a file needs one.
    package var files = 10_000

    package init() {}
}

/// Thread that writes recordings to disk, so that a slow disk blocks no other thread.
///
/// Callers bound the bytes queued for each recording (`isTooSlow(for:at:)`).
package final class DiskWriter: Sendable {
    package enum Job: Sendable {
        case open(OutputID, directory: String)
        /// `file` is the file's index in the recording.
        case create(OutputID, file: Int, path: String)
        /// The file holds `seconds` of media once this run is written.
        case write(OutputID, file: Int, MediaMuxer.Run, seconds: Double)
        case close(OutputID, file: Int)
        /// Replaces a file as a whole by what the function returns, which the disk's thread calls.
        case replace(OutputID, path: String, @Sendable () -> [UInt8])
        /// Last job of a recording.
        case end(OutputID)
    }

    package enum Notice: Sendable {
        /// The directory exists.
        case ready(OutputID)
        /// The recording failed for the given reason code; the bytes written so far remain.
        case failed(OutputID, reason: String)
        case ended(OutputID)
    }

    /// Part of a file that is on disk.
    package struct Kept: Hashable, Sendable {
        package var seconds: Double
        package var bytes: Int
    }

    private struct State {
        var jobs: [Job] = []
        var waiting: [OutputID: DiskBacklog] = [:]
        /// Media on disk, by the recordings' files.
        var kept: [OutputID: [Int: Kept]] = [:]
        /// Recordings that ended because the disk was too slow; their queued bytes are discarded.
        var abandoned: Set<OutputID> = []
        var use = Use()
        var isStopped = false
    }

    /// Figures of the disk for the metrics.
    package struct Use: Hashable, Sendable {
        /// Free bytes where recordings are written, at most ten seconds old; `nil` if unknown.
        package var freeBytes: Int?
        /// Bytes of media written since the start.
        package var writtenBytes: UInt64 = 0

        package init() {}
    }

    package let notices: Mailbox<Notice>
    private let limits: RecordingLimits
    /// Directory that the recordings' directories are in; `nil` if free space is not looked at.
    private let directory: String?
    private let state = Locked(State())
    private let wake = DispatchSemaphore(value: 0)
    private let finished = DispatchSemaphore(value: 0)

    package init(limits: RecordingLimits, directory: String? = nil) throws(SystemError) {
        self.limits = limits
        self.directory = directory
        notices = try Mailbox()
        let thread = Thread { @Sendable [self] in run() }
        thread.name = "recorder-disk"
        thread.stackSize = 1 << 18
        thread.start()
    }

    package func post(_ jobs: [Job]) {
        guard !jobs.isEmpty else { return }
        let now = Instant.monotonic()
        let limit = limits.waitingBytes
        let wasEmpty = state.withLock { state in
            defer {
                for case .write(let tap, _, let run, _) in jobs {
                    state.waiting[tap, default: DiskBacklog()]
                        .add(run.bytes.count, limit: limit, at: now)
                }
                state.jobs += jobs
            }
            return state.jobs.isEmpty
        }
        if wasEmpty { wake.signal() }
    }

    /// Returns the bytes of a recording that are queued for writing.
    package func waiting(for tap: OutputID) -> Int {
        state.withLock { $0.waiting[tap]?.bytes ?? 0 }
    }

    /// Whether more of a recording than the limit has been queued all of the last half second.
    ///
    /// Bytes posted this moment do not count: an idle disk has not had its turn yet.
    package func isTooSlow(for tap: OutputID, at now: Instant) -> Bool {
        state.withLock { $0.waiting[tap]?.isOverdue(at: now) == true }
    }

    /// Discards all queued and future writes of a recording.
    package func abandon(_ tap: OutputID) { state.withLock { _ = $0.abandoned.insert(tap) } }

    /// Returns the media on disk, by the recording's files.
    package func kept(of tap: OutputID) -> [Int: Kept] { state.withLock { $0.kept[tap] ?? [:] } }

    /// Figures of the disk as it was last looked at.
    package var use: Use { state.withLock { $0.use } }

    /// Stops the thread; waits up to `milliseconds` for queued jobs to finish.
    package func stop(milliseconds: Int) {
        state.withLock { $0.isStopped = true }
        wake.signal()
        _ = finished.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    private func run() {
        var recordings: [OutputID: DiskRecording] = [:]
        var nextLook: Int64 = 0
        while true {
            let now = kernel_monotonic_nanoseconds()
            if let directory, now >= nextLook {
                let free = DiskFiles.freeBytes(around: directory)
                state.withLock { $0.use.freeBytes = free }
                nextLook = now + Int64(Self.lookSeconds) * 1_000_000_000
            }
            let (jobs, isStopped) = state.withLock { state in
                var jobs: [Job] = []
                swap(&jobs, &state.jobs)
                return (jobs, state.isStopped)
            }
            for job in jobs { carryOut(job, &recordings) }
            guard jobs.isEmpty else { continue }
            if isStopped { break }
            _ = wake.wait(timeout: .now() + .seconds(Self.lookSeconds))
        }
        finished.signal()
    }

    /// Interval of the looks at the free space.
    private static let lookSeconds = 10

    private func carryOut(_ job: Job, _ recordings: inout [OutputID: DiskRecording]) {
        switch job {
        case .open(let tap, let directory):
            var recording = DiskRecording(directory: directory, limits: limits)
            let failure = recording.open()
            recordings[tap] = recording
            notices.post([failure.map { .failed(tap, reason: $0) } ?? .ready(tap)])
        case .create(let tap, let file, let path):
            report(recordings[tap]?.create(file, path), of: tap)
        case .write(let tap, let file, let run, let seconds):
            write(run, to: file, of: tap, seconds, &recordings)
        case .close(let tap, let file): recordings[tap]?.close(file)
        case .replace(let tap, let path, let text):
            report(recordings[tap]?.replace(path, text()), of: tap)
        case .end(let tap):
            recordings[tap]?.closeAll()
            recordings[tap] = nil
            notices.post([.ended(tap)])
        }
    }

    private func write(
        _ run: MediaMuxer.Run,
        to file: Int,
        of tap: OutputID,
        _ seconds: Double,
        _ recordings: inout [OutputID: DiskRecording]
    ) {
        let isAbandoned = state.withLock { $0.abandoned.contains(tap) }
        let failure = isAbandoned ? nil : recordings[tap]?.write(run, to: file)
        let isKept = !isAbandoned && recordings[tap]?.isBroken == false
        let bytes = recordings[tap]?.length(of: file) ?? 0
        state.withLock { state in
            state.waiting[tap]?.remove(run.bytes.count, limit: limits.waitingBytes)
            if isKept {
                state.use.writtenBytes &+= UInt64(run.bytes.count)
                state.kept[tap, default: [:]][file] = Kept(seconds: seconds, bytes: bytes)
            }
        }
        report(failure, of: tap)
    }

    /// Releases the state of a recording that has ended.
    package func forget(_ tap: OutputID) {
        state.withLock { state in
            state.waiting[tap] = nil
            state.kept[tap] = nil
            state.abandoned.remove(tap)
        }
    }

    private func report(_ failure: String??, of tap: OutputID) {
        if let failure = failure ?? nil { notices.post([.failed(tap, reason: failure)]) }
    }
}

/// On-disk state of one recording.
private struct DiskRecording {
    private struct File {
        var descriptor: Int32
        var end = 0
    }

    private let directory: String
    private let limits: RecordingLimits
    private var files: [Int: File] = [:]
    private var bytes = 0
    /// Whether a system call has failed; nothing more is written then.
    package private(set) var isBroken = false
    private var isTold = false
    private var nextLook: Int64 = 0

    init(directory: String, limits: RecordingLimits) {
        self.directory = directory
        self.limits = limits
    }

    /// Creates the directory and checks the free space.
    ///
    /// This and the following methods return a reason code when the recording cannot continue; it
    /// is returned only once.
    mutating func open() -> String? {
        if let failure = DiskFiles.makeDirectory(directory) { return fail(failure) }
        return checkFreeBytes()
    }

    mutating func create(_ file: Int, _ path: String) -> String? {
        guard !isBroken else { return nil }
        let descriptor = DiskFiles.create(path)
        guard descriptor >= 0 else { return fail(-descriptor) }
        files[file] = File(descriptor: descriptor)
        return nil
    }

    mutating func write(_ run: MediaMuxer.Run, to number: Int) -> String? {
        guard !isBroken, let file = files[number] else { return nil }
        if let failure = DiskFiles.write(run.bytes, to: file.descriptor, at: run.offset) {
            // A partial cluster would be unreadable: truncate the file to its last complete write.
            DiskFiles.truncate(file.descriptor, to: file.end)
            return fail(failure)
        }
        let end = max(file.end, run.offset + run.bytes.count)
        bytes += end - file.end
        files[number]?.end = end
        guard bytes <= limits.bytes else { return report("size-limit") }
        let now = kernel_monotonic_nanoseconds()
        guard now >= nextLook else { return nil }
        nextLook = now + 1_000_000_000
        return checkFreeBytes()
    }

    /// Returns the bytes of an open file.
    func length(of number: Int) -> Int { files[number]?.end ?? 0 }

    mutating func replace(_ path: String, _ bytes: [UInt8]) -> String? {
        let failure = DiskFiles.replace(path, with: bytes)
        // `session.json` is written even after the disk was full; further failures are not
        // reported.
        guard let failure, !isBroken else { return nil }
        return fail(failure)
    }

    mutating func close(_ number: Int) {
        guard let file = files.removeValue(forKey: number) else { return }
        kernel_close(file.descriptor)
    }

    mutating func closeAll() {
        for file in files.values { kernel_close(file.descriptor) }
        files = [:]
    }

    private mutating func checkFreeBytes() -> String? {
        guard let free = DiskFiles.freeBytes(at: directory), free < limits.freeBytes else {
            return nil
        }
        return report("disk-full")
    }

    private mutating func fail(_ number: Int32) -> String? {
        isBroken = true
        switch number {
        case ENOSPC, EDQUOT: return report("disk-full")
        case EACCES, EPERM, EROFS: return report("not-permitted")
        default: return report("disk-error")
        }
    }

    private mutating func report(_ reason: String) -> String? {
        defer { isTold = true }
        return isTold ? nil : reason
    }
}

/// Bytes of one recording that wait for the disk, and since when they have been too many.
struct DiskBacklog {
    /// Time in milliseconds that the disk has for more than the limit.
    ///
    /// A burst, such as the flush of many tracks, is over the limit until the disk thread has had
    /// its turn. The bytes are bounded by the limit and what publishers may send in this time.
    static let patienceMilliseconds: Int64 = 500

    private(set) var bytes = 0
    private var overSince: Instant?

    init() {}

    mutating func add(_ count: Int, limit: Int, at now: Instant) {
        bytes += count
        if bytes > limit, overSince == nil { overSince = now }
    }

    mutating func remove(_ count: Int, limit: Int) {
        bytes -= count
        if bytes <= limit { overSince = nil }
    }

    /// Whether more than the limit has waited all the time that the disk has for it.
    func isOverdue(at now: Instant) -> Bool {
        guard let overSince else { return false }
        return now.milliseconds(since: overSince) >= Self.patienceMilliseconds
    }
}
