import SFU
import WorkerInterface

/// Places of a send queue: one list for each content, in order of arrival, and the free ones.
///
/// Safe: it owns the links, and they lead only from one used place to another.
@safe
struct PlaceLists: ~Copyable {
    /// Place or none, in four bytes; `Int32?` takes eight.
    private struct OptionalPlace {
        private let number: Int32

        private init(number: Int32) { self.number = number }

        init(_ place: Int) { number = Int32(place) }

        static var none: Self { Self(number: -1) }

        var place: Int? { number < 0 ? nil : Int(number) }
    }

    /// Links to the places before and after in a list.
    private struct Link {
        var previous: OptionalPlace
        var next: OptionalPlace
        var tag: UInt32
    }

    private struct Ends {
        var first = OptionalPlace.none
        var last = OptionalPlace.none
    }

    private let links: UnsafeMutablePointer<Link>
    /// Number of places used so far, some free again; memory above was never touched.
    private var untouched = 0
    private var firstFree = OptionalPlace.none
    private var video = Ends()
    private var audio = Ends()
    private var other = Ends()

    /// Allocates the links of `capacity` places; `take` must not be called more often than that
    /// without `remove`.
    init(capacity: Int) {
        precondition(capacity > 0 && capacity < Int(Int32.max))
        unsafe links = .allocate(capacity: capacity)
    }

    deinit { unsafe links.deallocate() }

    /// Returns the first place of a list.
    func first(of content: DatagramContent) -> Int? { ends(of: content).first.place }

    /// Returns the place after `place` in its list.
    func next(after place: Int) -> Int? { unsafe links[place].next.place }

    /// Returns the tag that was given to `append`.
    func tag(of place: Int) -> UInt32 { unsafe links[place].tag }

    /// Takes a free place, which `append` must put into a list.
    mutating func take() -> Int {
        guard let place = firstFree.place else {
            untouched += 1
            return untouched - 1
        }
        firstFree = unsafe links[place].next
        return place
    }

    /// Appends a taken place to a list.
    mutating func append(_ place: Int, to content: DatagramContent, tag: UInt32) {
        var ends = ends(of: content)
        unsafe (links + place).initialize(to: Link(previous: ends.last, next: .none, tag: tag))
        if let last = ends.last.place {
            unsafe links[last].next = OptionalPlace(place)
        } else {
            ends.first = OptionalPlace(place)
        }
        ends.last = OptionalPlace(place)
        setEnds(of: content, ends)
    }

    /// Removes a place from its list; it is free afterwards.
    mutating func remove(_ place: Int, from content: DatagramContent) {
        let link = unsafe links[place]
        var ends = ends(of: content)
        if let previous = link.previous.place {
            unsafe links[previous].next = link.next
        } else {
            ends.first = link.next
        }
        if let next = link.next.place {
            unsafe links[next].previous = link.previous
        } else {
            ends.last = link.previous
        }
        setEnds(of: content, ends)
        unsafe links[place].next = firstFree
        firstFree = OptionalPlace(place)
    }

    private func ends(of content: DatagramContent) -> Ends {
        switch content {
        case .video: video
        case .audio: audio
        case .other: other
        }
    }

    private mutating func setEnds(of content: DatagramContent, _ ends: Ends) {
        switch content {
        case .video: video = ends
        case .audio: audio = ends
        case .other: other = ends
        }
    }
}
