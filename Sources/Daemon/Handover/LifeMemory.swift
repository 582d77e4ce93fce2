import ControlPlane
import Kernel
import RTP
import SFU

/// Memory in which this life of the daemon keeps what the next one needs to go on with the calls.
///
/// It is one file in memory: a header, the rooms' records, and one part for each worker. The next
/// life makes memory of its own and only reads this one, so each format is written by one release
/// and read by it and the next.
///
///     0  magic, 8  format, 16 state, 24 workers, 32 bytes of the rooms' part, 40 of a worker's
///     48 life, 56 begun (monotonic ns), 64 suspicion, 72 local addresses (hash)
///     80 length of the DTLS identity, 88 whether a fault ended it
///     96 transports of a worker, 104 its slots, 112 lives that began to go on from it
///     128 the identity
@safe
struct LifeMemory {
    /// Whether the next life may go on from the memory.
    enum State: UInt64 {
        /// The life has not yet taken over; nothing was sent.
        case new = 0
        case usable = 1
        /// Another life has taken over, so the indexes here are old.
        case consumed = 2
        /// The life ended in order: it is to be continued, and is no death.
        case handedOver = 3
    }

    /// Sizes and facts that the next life must share to go on.
    struct Shape: Equatable {
        var workers: Int
        var transports: Int
        var slots: Int
        /// Hash of the local addresses, whose places paths name.
        var addresses: UInt64

        var workerBytes: Int { SavedMemory.byteCount(transports: transports, slots: slots) }
    }

    fileprivate static let magic: UInt64 = 0x6566_696c_6475_6673
    fileprivate static let format: UInt64 = 1
    static let headerBytes = 4_096
    /// Room for the rooms' records; only what is written takes memory.
    static let roomBytes = 1 << 30
    fileprivate static let identityOffset = 128

    let memory: SharedMemory
    let shape: Shape

    /// Creates the memory of life number `life`.
    init(
        _ shape: Shape,
        life: UInt64,
        suspicion: UInt64,
        at now: Instant
    ) throws(SystemError) {
        self.shape = shape
        memory = try SharedMemory(
            named: "sfud-calls",
            byteCount: Self.headerBytes + Self.roomBytes + shape.workers * shape.workerBytes
        )
        set(8, Self.format)
        set(24, UInt64(shape.workers))
        set(32, UInt64(Self.roomBytes))
        set(40, UInt64(shape.workerBytes))
        set(48, life)
        set(56, UInt64(now.nanoseconds))
        set(64, suspicion)
        set(72, shape.addresses)
        set(96, UInt64(shape.transports))
        set(104, UInt64(shape.slots))
        memory.publish(Self.magic, at: 0)
        memory.markFaults(at: Self.faultOffset)
    }

    static let faultOffset = 88
    fileprivate static let attemptOffset = 112

    /// Notes that the daemon ends because a part of it has failed.
    func noteFault() { memory.publish(1, at: Self.faultOffset) }

    private func set(_ offset: Int, _ value: UInt64) {
        unsafe memory.bytes.storeBytes(of: value, toByteOffset: offset, as: UInt64.self)
    }

    /// Number of this life, from 1.
    var life: UInt64 { unsafe memory.bytes.load(fromByteOffset: 48, as: UInt64.self) }

    /// Says what the next life may do with the memory, after everything that was stored before.
    func publish(_ state: State) { memory.publish(state.rawValue, at: 16) }

    /// Memory of the rooms' records.
    var rooms: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(
            rebasing: memory.bytes[Self.headerBytes..<Self.headerBytes + Self.roomBytes]
        )
    }

    /// Memory of a worker.
    func worker(_ index: Int) -> SavedMemory {
        let start = Self.headerBytes + Self.roomBytes + index * shape.workerBytes
        let part = unsafe UnsafeMutableRawBufferPointer(
            rebasing: memory.bytes[start..<start + shape.workerBytes]
        )
        return unsafe SavedMemory(part, transports: shape.transports, slots: shape.slots)
    }

    /// Stores the certificate that all workers show their peers, and its key.
    func save(_ identity: DTLSIdentity) {
        let place = unsafe UnsafeMutableRawBufferPointer(
            rebasing: memory.bytes[Self.identityOffset..<Self.headerBytes]
        )
        set(80, UInt64(unsafe identity.write(into: place)))
    }
}

/// Memory that an earlier life has left, checked.
@safe
struct PreviousLife {
    /// Why an earlier life is not continued.
    enum Refusal: Error, Equatable {
        /// It had nothing to continue, or another life has continued it.
        case nothing
        case otherFormat
        /// Workers, limits or addresses are other ones now.
        case otherConfiguration
        /// Lives end soon after they go on: whatever they go on with kills them.
        case poison
        case damaged
    }

    let memory: SharedMemory
    let identity: DTLSIdentity
    let life: UInt64
    /// Points for the deaths in a row that came soon after a life had gone on with the calls.
    let suspicion: UInt64
    private let shape: LifeMemory.Shape

    /// Suspicion at which the calls are given up, as they may be what ends the lives.
    ///
    /// It takes two faults within 30 s of going on, or six deaths from outside within 1 s, such as
    /// by the kernel for lack of memory. Somebody who kills the daemon now and then does not end
    /// the calls. A thread that stands still is found after some 11 s.
    private static let poison: UInt64 = 6
    private static let fault: (points: UInt64, nanoseconds: Int64) = (3, 30_000_000_000)
    /// Lives that may begin to go on from one memory: those before have died while they did so.
    private static let attempts: UInt64 = 3
    private static let kill: (points: UInt64, nanoseconds: Int64) = (1, 1_000_000_000)

    /// Checks what an earlier life has left; `shape` is the present one.
    init(
        _ memory: SharedMemory,
        _ shape: LifeMemory.Shape,
        at now: Instant
    ) throws(Refusal) {
        self.memory = memory
        self.shape = shape
        guard unsafe memory.bytes.count >= LifeMemory.headerBytes,
            Self.word(memory, 0) == LifeMemory.magic
        else { throw .damaged }
        guard Self.word(memory, 8) == LifeMemory.format else { throw .otherFormat }
        let state = LifeMemory.State(rawValue: Self.word(memory, 16))
        guard state == .usable || state == .handedOver else { throw .nothing }
        guard Self.word(memory, 24) == UInt64(shape.workers),
            Self.word(memory, 32) == UInt64(LifeMemory.roomBytes),
            Self.word(memory, 40) == UInt64(shape.workerBytes),
            Self.word(memory, 72) == shape.addresses,
            Self.word(memory, 96) == UInt64(shape.transports),
            Self.word(memory, 104) == UInt64(shape.slots)
        else { throw .otherConfiguration }
        let end = LifeMemory.headerBytes + LifeMemory.roomBytes + shape.workers * shape.workerBytes
        guard unsafe memory.bytes.count >= end else { throw .damaged }
        life = Self.word(memory, 48)
        let begun = Int64(clamping: Self.word(memory, 56))
        let isFault = Self.word(memory, LifeMemory.faultOffset) != 0
        let death = isFault ? Self.fault : Self.kill
        let isQuick = life > 1 && now.nanoseconds &- begun < death.nanoseconds
        suspicion =
            state == .usable && isQuick ? Self.word(memory, 64) &+ death.points : 0
        guard suspicion < Self.poison else { throw .poison }
        let attempt = Self.word(memory, LifeMemory.attemptOffset) &+ 1
        guard attempt <= Self.attempts else { throw .poison }
        memory.publish(attempt, at: LifeMemory.attemptOffset)
        identity = try Self.identity(memory)
    }

    private static func word(_ memory: SharedMemory, _ offset: Int) -> UInt64 {
        unsafe memory.bytes.load(fromByteOffset: offset, as: UInt64.self)
    }

    private static func identity(_ memory: SharedMemory) throws(Refusal) -> DTLSIdentity {
        let count = word(memory, 80)
        guard (1...UInt64(DTLSIdentity.savedLimit)).contains(count) else { throw .damaged }
        let place = LifeMemory.identityOffset..<LifeMemory.identityOffset + Int(count)
        let bytes = unsafe UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(memory.bytes)[place]
        )
        do throws(DTLSError) {
            return unsafe try DTLSIdentity(saved: bytes.bindMemory(to: UInt8.self).span)
        } catch {
            throw .damaged
        }
    }

    /// Memory of the rooms' records.
    var rooms: UnsafeRawBufferPointer {
        let end = LifeMemory.headerBytes + LifeMemory.roomBytes
        return unsafe UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(memory.bytes)[LifeMemory.headerBytes..<end]
        )
    }

    /// State of a worker; `nil` if it cannot be read.
    func worker(_ index: Int) -> SavedState? {
        let start = LifeMemory.headerBytes + LifeMemory.roomBytes + index * shape.workerBytes
        return unsafe SavedState(
            UnsafeRawBufferPointer(
                rebasing: UnsafeRawBufferPointer(memory.bytes)[start..<start + shape.workerBytes]
            ),
            owner: memory
        )
    }

    /// Makes sure that no other life goes on from the same indexes; before anything is sent.
    func consume() { memory.publish(LifeMemory.State.consumed.rawValue, at: 16) }
}
