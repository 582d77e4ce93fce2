/// Log of records in a region of memory that outlives the process.
///
/// A region is shared memory that keeps its bytes when the process is killed at any instruction. A
/// group of changes is written behind the last one, and committed by one word that is stored last:
/// a reader finds each group whole or not at all. Nothing is overwritten that a reader may need.
///
/// When as much is outdated as is live, or takes up half of the space that live records leave, the
/// live ones are copied into the other half, a few with each group, while new groups go to both.
/// One more word then switches to that half. So the work for a group is bounded: it is in
/// proportion to its length.
///
/// When the live records do not fit any longer, the log stops: it is marked as unusable, so that
/// nothing is restored from it, and takes no more changes.
///
/// It is a class: as a `~Copyable` structure, compiled by Swift 6.3.1, it left a copy of its
/// dictionaries behind with each step of a compaction.
package final class RecordLog {
    /// Bytes of a record's entry in a half.
    fileprivate struct Place {
        var offset: Int
        var length: Int
    }

    /// Places of the live records of one scope.
    fileprivate struct Scope {
        var name: String
        var places: [RecordKey: Place] = [:]
    }

    /// One half, as far as it is written.
    fileprivate struct Half {
        var number: Int
        var tail = 0
        var groups: UInt64 = 0
        var scopes: [UInt64: Scope] = [:]
        /// Length of the live entries.
        var live = 0
    }

    /// Copying of the live records into the other half.
    fileprivate struct Compaction {
        var target: Half
        /// Scopes and keys that are still to be copied, the next ones last.
        var scopes: [UInt64]
        var keys: [RecordKey] = []
        var scope: UInt64 = 0
    }

    var region: RecordRegion
    private var active = Half(number: 0)
    private var compaction: Compaction?
    /// Whether changes are still saved.
    package private(set) var isUsable = true
    /// Number of finished compactions.
    package private(set) var compactions = 0

    /// Makes an empty log; `memory` is aligned to eight bytes and outlives the log.
    ///
    /// `free` is told of parts whose contents are not needed any more; they may be zeroed.
    /// Returns `nil` if the memory is too short, or longer than 8 GiB.
    package init?(
        formatting memory: UnsafeMutableRawBufferPointer,
        free: @escaping (UnsafeMutableRawBufferPointer) -> Void = { _ in }
    ) {
        guard var region = unsafe RecordRegion(memory) else { return nil }
        unsafe region.onFree = free
        self.region = region
        region.store(0, in: .magic)
        region.store(UInt64(region.halfSize), in: .halfSize)
        region.store(0, in: .half)
        region.store(0, in: .firstTail)
        region.store(0, in: .secondTail)
        region.store(0, in: .isUnusable)
        region.store(RecordRegion.magic, in: .magic)
    }

    /// Bytes of live records.
    package var liveBytes: Int { active.live }
    /// Bytes that one half holds: the limit of the live records, with some overhead.
    package var capacity: Int { region.halfSize }

    /// Appends a group of changes, all of which are saved when this returns.
    ///
    /// - Returns: whether they were saved: `false` if the log is full, now or before.
    @discardableResult
    package func append(_ group: RecordGroup) -> Bool {
        guard isUsable else { return false }
        guard !group.isEmpty else { return true }
        let entries = Self.entries(of: group)
        let length = RecordFrame.length(scope: group.scope, entries: entries.count)
        if active.tail + length > region.halfSize { compactNow() }
        guard active.tail + length <= region.halfSize, write(group, entries, length) else {
            stop()
            return false
        }
        region.store(UInt64(active.tail), in: RecordRegion.tail(of: active.number))
        compactSome(after: length)
        return isUsable
    }

    /// Stops saving for good, and marks the log as unusable.
    package func stop() {
        isUsable = false
        compaction = nil
        active.scopes = [:]
        region.store(1, in: .isUnusable)
    }

    private static func entries(of group: RecordGroup) -> [UInt8] {
        var entries: [UInt8] = []
        entries.reserveCapacity(
            group.changes.reduce(16) {
                $0 + RecordFrame.entryHeader + $1.key.bytes.count + ($1.value?.count ?? 0)
            }
        )
        if group.clears { RecordFrame.append(.clear, nil, [], to: &entries) }
        for change in group.changes {
            let kind: RecordFrame.Entry = change.value == nil ? .remove : .put
            RecordFrame.append(kind, change.key, change.value ?? [], to: &entries)
        }
        return entries
    }

    /// Writes a group to the half in use, and to the one that will be.
    private func write(_ group: RecordGroup, _ entries: [UInt8], _ length: Int) -> Bool {
        Self.write(group, entries, to: &active, region)
        guard var target = compaction?.target else { return true }
        guard target.tail + length <= region.halfSize else { return false }
        compaction?.target = Half(number: target.number)
        Self.write(group, entries, to: &target, region)
        compaction?.target = target
        return true
    }

    private static func write(
        _ group: RecordGroup,
        _ entries: [UInt8],
        to half: inout Half,
        _ region: RecordRegion
    ) {
        let bytes = RecordFrame.bytes(scope: group.scope, ordinal: half.groups, body: entries)
        region.copy(bytes, to: half.tail, of: half.number)
        let hash = RecordDigest.of(group.scope)
        if group.clears { half.remove(hash) }
        var offset = half.tail + RecordFrame.headerSize + 2 + group.scope.utf8.count
        if group.clears { offset += RecordFrame.entryHeader }
        for change in group.changes {
            let length =
                RecordFrame.entryHeader + change.key.bytes.count + (change.value?.count ?? 0)
            let place = change.value == nil ? nil : Place(offset: offset, length: length)
            half.set(place, of: change.key, in: hash, named: group.scope)
            offset += length
        }
        half.tail += bytes.count
        half.groups += 1
    }
}

// Compaction.
extension RecordLog {
    /// Entries of one scope that are copied as a group, in bytes.
    private static let copiedAtOnce = 16 << 10

    /// Copies some of the live records if it is time to; `length` bytes have been written.
    private func compactSome(after length: Int) {
        if compaction == nil {
            guard active.tail - active.live > outdatedAtMost else { return }
            beginCompaction()
        }
        // It must be over before the half in use is full, even if all that follows is new.
        let remaining = max(1, (region.halfSize - active.tail) / 2)
        let share = 1 + active.live / remaining
        var budget = max(Self.copiedAtOnce, min(length, region.halfSize) * (1 + share))
        while budget > 0, isUsable, compaction != nil { budget -= copyGroup() }
    }

    /// Outdated bytes from which live records are copied: as many as are live, but half of the room
    /// that they leave at most, and a mebibyte at least where that is less.
    private var outdatedAtMost: Int {
        min(max(active.live, Self.outdatedAtLeast), (region.halfSize - active.live) / 2)
    }

    private static let outdatedAtLeast = 1 << 20

    private func compactNow() {
        if compaction == nil { beginCompaction() }
        while isUsable, compaction != nil { _ = copyGroup() }
    }

    private func beginCompaction() {
        compaction = Compaction(
            target: Half(number: 1 - active.number),
            scopes: Array(active.scopes.keys)
        )
    }

    /// Copies a group of live records of one scope; with the last one, switches to the other half.
    ///
    /// - Returns: the number of bytes copied.
    private func copyGroup() -> Int {
        guard var work = compaction else { return 0 }
        compaction = nil
        guard !work.keys.isEmpty || nextScope(&work) else {
            finish(work.target)
            return 0
        }
        guard let scope = active.scopes[work.scope] else {
            work.keys = []
            compaction = work
            return 0
        }
        var entries: [UInt8] = []
        var copied: [(RecordKey, Int)] = []
        while entries.count < Self.copiedAtOnce, let key = work.keys.popLast() {
            // Records of groups that came since are in the target already.
            guard work.target.scopes[work.scope]?.places[key] == nil,
                let place = scope.places[key]
            else { continue }
            unsafe entries += region.bytes(
                place.offset..<place.offset + place.length,
                of: active.number
            )
            copied.append((key, place.length))
        }
        guard !copied.isEmpty else {
            compaction = work
            return 0
        }
        let bytes = RecordFrame.bytes(
            scope: scope.name,
            ordinal: work.target.groups,
            body: entries
        )
        guard work.target.tail + bytes.count <= region.halfSize else {
            stop()
            return 0
        }
        region.copy(bytes, to: work.target.tail, of: work.target.number)
        var offset = work.target.tail + RecordFrame.headerSize + 2 + scope.name.utf8.count
        for (key, length) in copied {
            let place = Place(offset: offset, length: length)
            work.target.set(place, of: key, in: work.scope, named: scope.name)
            offset += length
        }
        work.target.tail += bytes.count
        work.target.groups += 1
        compaction = work
        return bytes.count
    }

    private func nextScope(_ work: inout Compaction) -> Bool {
        while let next = work.scopes.popLast() {
            guard let scope = active.scopes[next] else { continue }
            work.scope = next
            work.keys = Array(scope.places.keys)
            return true
        }
        return false
    }

    private func finish(_ target: Half) {
        region.store(UInt64(target.tail), in: RecordRegion.tail(of: target.number))
        region.store(UInt64(target.number), in: .half)
        region.free(active.number)
        active = target
        compactions += 1
    }
}

extension RecordLog.Half {
    /// Sets the place of a record, or forgets it (`nil`).
    fileprivate mutating func set(
        _ place: RecordLog.Place?,
        of key: RecordKey,
        in hash: UInt64,
        named name: String
    ) {
        // Taken out and put back, so that its dictionary is changed in place and never copied.
        var scope = scopes.removeValue(forKey: hash) ?? RecordLog.Scope(name: name)
        let before =
            if let place {
                scope.places.updateValue(place, forKey: key)
            } else {
                scope.places.removeValue(forKey: key)
            }
        live += (place?.length ?? 0) - (before?.length ?? 0)
        if !scope.places.isEmpty { scopes[hash] = scope }
    }

    fileprivate mutating func remove(_ hash: UInt64) {
        guard let scope = scopes.removeValue(forKey: hash) else { return }
        live -= scope.places.values.reduce(0) { $0 + $1.length }
    }
}
