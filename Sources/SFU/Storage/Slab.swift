import WorkerInterface

/// Storage of objects at the indexes named by the control plane's handles.
///
/// It grows when an object is made, never in the packet path; the elements may own resources. The
/// first element begins a cache line, so an element of one or two lines touches no third.
@safe
struct Slab<Element: ~Copyable, Kind>: ~Copyable {
    private var places: UnsafeMutablePointer<Element>
    /// Generation of the element at each place; 0 marks an empty place.
    private var generations: UnsafeMutablePointer<UInt32>
    private(set) var capacity: Int
    private(set) var count = 0
    /// Elements that saved memory has room for; 0 for memory of the slab's own.
    private let reserved: Int

    init() {
        reserved = 0
        capacity = 16
        unsafe places = Self.allocate(capacity: 16)
        unsafe generations = .allocate(capacity: 16)
        unsafe generations.initialize(repeating: 0, count: 16)
    }

    /// Stores the elements in a section of memory that outlives the process; without such memory in
    /// memory of its own.
    ///
    /// Saved elements are plain values, and stay where they are when the slab goes.
    init(in memory: SavedMemory?, _ section: SavedMemory.Section) where Element: BitwiseCopyable {
        guard let memory else {
            reserved = 0
            capacity = 16
            unsafe places = Self.allocate(capacity: 16)
            unsafe generations = .allocate(capacity: 16)
            unsafe generations.initialize(repeating: 0, count: 16)
            return
        }
        precondition(MemoryLayout<Element>.stride == section.stride, "the section has these")
        reserved = memory.capacity(of: section)
        capacity = min(16, reserved)
        unsafe places = memory.elements(of: section).assumingMemoryBound(to: Element.self)
        unsafe generations = memory.generations(of: section)
    }

    deinit {
        guard reserved == 0 else { return }
        for index in 0..<capacity where unsafe generations[index] != 0 {
            unsafe (places + index).deinitialize(count: 1)
        }
        unsafe places.deallocate()
        unsafe generations.deallocate()
    }

    /// Whether `handle` names the element that is stored there now.
    func contains(_ handle: Handle<Kind>) -> Bool {
        let index = Int(handle.index)
        return unsafe index < capacity && handle.generation != 0
            && generations[index] == handle.generation
    }

    func isOccupied(_ index: Index<Kind>) -> Bool {
        unsafe index.offset < capacity && generations[index.offset] != 0
    }

    /// Returns the index of the element at an offset, if there is one; the offset may be any.
    func index(at offset: Int) -> Index<Kind>? {
        guard offset >= 0, offset < capacity, unsafe generations[offset] != 0 else { return nil }
        return Index(offset)
    }

    /// Returns the handle of the element at an occupied place.
    func handle(at index: Index<Kind>) -> Handle<Kind> {
        precondition(isOccupied(index), "an empty place has no handle")
        return Handle(
            index: UInt32(index.offset),
            generation: unsafe generations[index.offset]
        )
    }

    /// Moves an element in; the place must be empty.
    mutating func insert(_ element: consuming Element, at handle: Handle<Kind>) {
        let index = handle.place
        precondition(handle.generation != 0 && !isOccupied(index), "the place is taken")
        while index.offset >= capacity { grow() }
        unsafe (places + index.offset).initialize(to: element)
        unsafe generations[index.offset] = handle.generation
        count += 1
    }

    /// Moves the element at an occupied place out.
    mutating func remove(at index: Index<Kind>) -> Element {
        precondition(isOccupied(index), "the place is empty")
        unsafe generations[index.offset] = 0
        count -= 1
        return unsafe (places + index.offset).move()
    }

    /// Address of the element, also for a part that wraps the slab.
    @inline(__always)
    func address(of index: Index<Kind>) -> UnsafeMutablePointer<Element> {
        precondition(isOccupied(index), "the place is empty")
        return unsafe places + index.offset
    }

    subscript(index: Index<Kind>) -> Element {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(address(of: index)) }
        @inline(__always) unsafeMutableAddress { unsafe address(of: index) }
    }

    /// Prefetches the element at `index` into the cache, if there is one.
    func prefetch(_ index: Index<Kind>) {
        guard index.offset < capacity else { return }
        unsafe Prefetch.read(places + index.offset, byteCount: MemoryLayout<Element>.size)
    }

    private static func allocate(capacity: Int) -> UnsafeMutablePointer<Element> {
        let bytes = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * MemoryLayout<Element>.stride,
            alignment: 64
        )
        return unsafe bytes.bindMemory(to: Element.self, capacity: capacity)
    }

    private mutating func grow() {
        // Grow by half only: places are large, and unused ones cost memory too.
        let more = capacity + capacity / 2
        guard reserved == 0 else {
            precondition(capacity < reserved, "a handle is within the saved memory")
            capacity = min(max(more, capacity + 1), reserved)
            return
        }
        let larger = unsafe Self.allocate(capacity: more)
        let moreGenerations = UnsafeMutablePointer<UInt32>.allocate(capacity: more)
        unsafe moreGenerations.initialize(repeating: 0, count: more)
        for index in 0..<capacity where unsafe generations[index] != 0 {
            unsafe (larger + index).moveInitialize(from: places + index, count: 1)
            unsafe moreGenerations[index] = generations[index]
        }
        unsafe places.deallocate()
        unsafe generations.deallocate()
        unsafe places = larger
        unsafe generations = moreGenerations
        capacity = more
    }
}
