import RTP
import WorkerInterface

/// One connection, from when it was taken to when it is closed.
struct StreamConnection: ~Copyable {
    let descriptor: Int32
    let path: Path
    /// When it was taken, or when the last whole frame came.
    var heard: Instant
    /// Whether a check has validated it: before, nothing is sent to it.
    var isChecked = false
    /// What has come of a frame that is not whole yet.
    var rest: [UInt8] = []
    var lane: StreamLane
    /// Whether the poller tells when it is writable.
    var isWatched = false
}

/// A worker's connections, by the number that `Path.local` has.
///
/// A number is a place and a generation, and of places the one that was left longest ago is taken
/// next: what is late for a connection that has ended does not meet another. Safe: it owns the
/// places, and a number is looked at before it is used.
@safe
struct StreamTable: ~Copyable {
    private let places: UnsafeMutablePointer<StreamConnection>
    let capacity: Int
    /// By place: the number of who lives there, 0 where nobody does; and the next generation.
    private var numbers: [UInt16]
    private var generations: [UInt16]
    /// Places that are free, the longest first: a circle.
    private var free: [UInt16]
    private var firstFree = 0
    package private(set) var count = 0

    private static let placeBits = 12
    private static let generationMask: UInt16 = 7
    static let maximumCapacity = 1 << placeBits

    init(capacity: Int) {
        precondition((1...Self.maximumCapacity).contains(capacity), "a number has 12 bits for it")
        self.capacity = capacity
        unsafe places = .allocate(capacity: capacity)
        numbers = Array(repeating: 0, count: capacity)
        generations = Array(repeating: 0, count: capacity)
        free = (0..<capacity).map { UInt16($0) }
    }

    deinit {
        for place in 0..<capacity where numbers[place] != 0 {
            unsafe (places + place).deinitialize(count: 1)
        }
        unsafe places.deallocate()
    }

    /// The number that the next connection gets; `nil`: no place is free.
    var next: UInt16? {
        guard count < capacity else { return nil }
        let place = free[firstFree]
        return Path.firstConnection | generations[Int(place)] << UInt16(Self.placeBits) | place
    }

    func contains(_ number: UInt16) -> Bool {
        let place = Self.place(of: number)
        return number >= Path.firstConnection && place < capacity && numbers[place] == number
    }

    /// The number of who lives at a place, if anybody does.
    func number(at place: Int) -> UInt16? {
        let number = numbers[place]
        return number == 0 ? nil : number
    }

    /// Takes a connection in, whose number is `next`.
    mutating func insert(_ connection: consuming StreamConnection) {
        let number = connection.path.local
        precondition(number == next, "a connection has the number that was given out")
        let place = Self.place(of: number)
        unsafe (places + place).initialize(to: connection)
        numbers[place] = number
        firstFree = (firstFree + 1) % capacity
        count += 1
    }

    /// Takes a connection out.
    mutating func remove(_ number: UInt16) -> StreamConnection {
        precondition(contains(number), "the connection is there")
        let place = Self.place(of: number)
        numbers[place] = 0
        generations[place] = (generations[place] &+ 1) & Self.generationMask
        count -= 1
        free[(firstFree + capacity - 1 - count) % capacity] = UInt16(place)
        return unsafe (places + place).move()
    }

    subscript(number: UInt16) -> StreamConnection {
        unsafeAddress {
            precondition(contains(number), "the connection is there")
            return unsafe UnsafePointer(places + Self.place(of: number))
        }
        unsafeMutableAddress {
            precondition(contains(number), "the connection is there")
            return unsafe places + Self.place(of: number)
        }
    }

    private static func place(of number: UInt16) -> Int {
        Int(number & (1 << UInt16(placeBits) - 1))
    }
}
