import RTP
import WorkerInterface

/// TCP connection, from accept to close.
struct TCPConnection: ~Copyable {
    let descriptor: Int32
    let path: Path
    /// Time of the last whole frame, or of the accept before the first.
    var lastReceived: Instant
    /// Whether a connectivity check has validated it: nothing is sent to it before.
    var isValidated = false
    /// Received part of an incomplete frame.
    var rest: [UInt8] = []
    var sender: TCPSender
    /// Whether the poller reports when it is writable.
    var isWatched = false
}

/// Table of a worker's connections, by the number in `Path.local`.
///
/// A number combines a place and a generation, and the place freed longest ago is used next. So
/// late data for an ended connection does not reach another one. Safe: it owns the places, and a
/// number is checked before it is used.
@safe
struct TCPConnectionTable: ~Copyable {
    private let places: UnsafeMutablePointer<TCPConnection>
    let capacity: Int
    /// By place: the number of its connection, 0 if it is free, and the next generation.
    private var numbers: [UInt16]
    private var generations: [UInt16]
    /// Circular list of free places, the one freed longest ago first.
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

    /// Number that the next connection gets; `nil` if no place is free.
    var next: UInt16? {
        guard count < capacity else { return nil }
        let place = free[firstFree]
        return Path.firstConnection | generations[Int(place)] << UInt16(Self.placeBits) | place
    }

    func contains(_ number: UInt16) -> Bool {
        let place = Self.place(of: number)
        return number >= Path.firstConnection && place < capacity && numbers[place] == number
    }

    /// Returns the number of the connection at a place, if there is one.
    func number(at place: Int) -> UInt16? {
        let number = numbers[place]
        return number == 0 ? nil : number
    }

    /// Inserts a connection, whose number must be `next`.
    mutating func insert(_ connection: consuming TCPConnection) {
        let number = connection.path.local
        precondition(number == next, "a connection has the number that was given out")
        let place = Self.place(of: number)
        unsafe (places + place).initialize(to: connection)
        numbers[place] = number
        firstFree = (firstFree + 1) % capacity
        count += 1
    }

    /// Removes a connection.
    mutating func remove(_ number: UInt16) -> TCPConnection {
        precondition(contains(number), "the connection is there")
        let place = Self.place(of: number)
        numbers[place] = 0
        generations[place] = (generations[place] &+ 1) & Self.generationMask
        count -= 1
        free[(firstFree + capacity - 1 - count) % capacity] = UInt16(place)
        return unsafe (places + place).move()
    }

    subscript(number: UInt16) -> TCPConnection {
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
