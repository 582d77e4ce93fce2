/// Heap box for a value that is made when it is first needed.
@safe
struct LazyBox<Element: ~Copyable>: ~Copyable {
    private var place: UnsafeMutablePointer<Element>?

    init() { unsafe place = nil }

    deinit {
        guard let place = unsafe place else { return }
        unsafe place.deinitialize(count: 1)
        unsafe place.deallocate()
    }

    var isMade: Bool { unsafe place != nil }

    /// Stores the value; the box must be empty.
    mutating func make(_ element: consuming Element) {
        precondition(!isMade, "made once")
        let made = UnsafeMutablePointer<Element>.allocate(capacity: 1)
        unsafe made.initialize(to: element)
        unsafe place = made
    }

    /// Stored value; the box must not be empty.
    var value: Element {
        unsafeAddress {
            guard let place = unsafe place else { preconditionFailure("not made yet") }
            return unsafe UnsafePointer(place)
        }
        unsafeMutableAddress {
            guard let place = unsafe place else { preconditionFailure("not made yet") }
            return unsafe place
        }
    }
}
