/// Text or bytes to which values are written one after another, in the order of their encoding.
///
/// It knows which containers are open; `level` is the number of containers around a value.
protocol ValueWriter: AnyObject {
    /// Bytes written so far.
    var count: Int { get }
    /// Number of open containers.
    var depth: Int { get }

    /// Begins an object; its members are sorted by name where `isSorted`.
    func openObject(isSorted: Bool)
    func openArray()
    /// Closes the innermost containers until `level` ones are open.
    func close(to level: Int)
    /// Closes a value's containers; if nothing has been written since `start`, writes an empty
    /// object.
    func end(level: Int, since start: Int)
    /// Comes before each value in an object of `level` containers, with the member's name.
    func member(_ name: String, at level: Int)
    /// Comes before each value in an array of `level` containers.
    func element(at level: Int)

    func null()
    func bool(_ value: Bool)
    func integer(_ value: Int64)
    /// Writes a number beyond `Int64`.
    func unsigned(_ value: UInt64)
    func number(_ value: Double)
    func string(_ value: String)
    func bytes(_ value: [UInt8])
    func json(_ value: JSON)
}

extension ValueWriter {
    func integer(_ value: some FixedWidthInteger) {
        if let small = Int64(exactly: value) {
            integer(small)
        } else {
            unsigned(UInt64(clamping: value))
        }
    }

    /// Writes a value by its conformance to `Encodable`.
    func encode(_ value: some Encodable) {
        do {
            try StreamEncoder(writer: self, level: 0).encode(value)
        } catch {
            preconditionFailure("\(type(of: value)) does not encode: \(error)")
        }
    }
}

/// Form in which a writer's containers are written.
protocol ContainerForm {
    /// Bytes written so far.
    var count: Int { get }
    mutating func beginObject(isSorted: Bool)
    mutating func endObject()
    mutating func beginArray()
    mutating func endArray()
}

/// A writer's state: what it has written, and the containers that are open.
///
/// It is one value, so that a call of the writer accesses its storage once.
struct WriterState<Form: ContainerForm> {
    var form: Form
    /// For each open container, the outermost first, whether it is an object.
    private var open: [Bool] = []

    init(_ form: Form) {
        self.form = form
        open.reserveCapacity(16)
    }

    var depth: Int { open.count }

    mutating func openObject(isSorted: Bool) {
        form.beginObject(isSorted: isSorted)
        open.append(true)
    }

    mutating func openArray() {
        form.beginArray()
        open.append(false)
    }

    mutating func close(to level: Int) {
        while open.count > level, let isObject = open.popLast() {
            if isObject { form.endObject() } else { form.endArray() }
        }
        precondition(open.count == level, "a value is encoded into a container that was complete")
    }

    mutating func end(level: Int, since start: Int) {
        close(to: level)
        guard form.count == start else { return }
        form.beginObject(isSorted: false)
        form.endObject()
    }
}
