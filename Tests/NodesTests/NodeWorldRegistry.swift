import Nodes
import TestSupport

// The registry.
extension NodeWorld {
    private func canReach(_ node: Node) -> Bool { !isAway && !node.isCut }

    func snapshot(_ name: NodeName) {
        guard let node = nodes[name], canReach(node) else { return }
        node.knowsAway = false
        let entries = store.sorted { $0.value.revision < $1.value.revision }
        deliver(to: name) { [self] node in
            node.cluster.receive(.snapshot, at: now)
            for (key, entry) in entries {
                let update = RegistryUpdate.entry(
                    key: key,
                    revision: entry.revision,
                    value: entry.value
                )
                node.cluster.receive(update, at: now)
            }
            node.cluster.receive(.complete, at: now)
        }
    }

    func carry(_ request: RegistryRequest, for node: Node) {
        let delay = random.pick(1...4)
        switch request {
        case .append(let number, let room, let bytes, let last):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                if random.chance(lossChance) {
                    if random.chance(0.5) { _ = append(room, bytes, last) }
                    return fail(number, node)
                }
                answer(number, append(room, bytes, last), node)
            }
        case .last(let number, let room):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                let outcome = journals[room]?.last.map {
                    RegistryOutcome.found(revision: $0.sequence, value: $0.bytes)
                }
                answer(number, outcome ?? .absent, node)
            }
        case .journal(let number, let room):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                let messages = journals[room] ?? []
                let outcome = messages.last.map {
                    RegistryOutcome.journal(messages.map(\.bytes), last: $0.sequence)
                }
                answer(number, outcome ?? .absent, node)
            }
        case .purge(let room, let sequence):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return }
                // As NATS 2.9 does it, 1 means everything.
                journals[room]?.removeAll { $0.sequence < sequence || sequence == 1 }
            }
        case .journals(let number):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                let rooms = journals.filter { !$0.value.isEmpty }.keys.sorted()
                answer(number, .journals(rooms, last: sequence), node)
            }
        case .forget(let number, let key, let revision):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                // Nobody hears of it.
                if let entry = store[key], entry.revision <= revision { store[key] = nil }
                answer(number, .stored(revision: revision), node)
            }
        case .watchAgain: after(milliseconds: 10) { [self] in snapshot(node.name) }
        case .read(let number, let key):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                let outcome =
                    store[key].map {
                        RegistryOutcome.found(revision: $0.revision, value: $0.value)
                    } ?? .absent
                answer(number, outcome, node)
            }
        case .write(let number, let key, let value, let condition):
            node.written.append(key)
            guard !forgotten.contains(node.name) || !key.hasPrefix("rooms.") else { return }
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                if random.chance(lossChance) {
                    if random.chance(0.5) { _ = write(key, value, condition) }
                    return fail(number, node)
                }
                answer(number, write(key, value, condition), node)
            }
        }
    }

    func append(_ room: String, _ bytes: [UInt8], _ last: UInt64) -> RegistryOutcome {
        guard journals[room]?.last?.sequence ?? 0 == last else { return .conflict }
        sequence += 1
        journals[room, default: []].append(Message(sequence: sequence, bytes: bytes))
        return .stored(revision: sequence)
    }

    /// Removes an entry as the broker's operator does, who asks for no revision.
    func remove(_ key: String) { _ = write(key, nil, .always) }

    private func write(
        _ key: String,
        _ value: [UInt8]?,
        _ condition: WriteCondition
    ) -> RegistryOutcome {
        switch condition {
        case .always: break
        case .absent: guard store[key] == nil else { return .conflict }
        case .revision(let expected):
            guard store[key]?.revision == expected else { return .conflict }
        }
        revision += 1
        store[key] = Entry(revision: revision, value: value)
        let update = RegistryUpdate.entry(key: key, revision: revision, value: value)
        for node in sorted where !node.knowsAway {
            after(milliseconds: 3 + (lag[node.name] ?? 0)) { [self] in
                guard canReach(node) else { return }
                deliver(to: node.name) { [self] in $0.cluster.receive(update, at: now) }
            }
        }
        return .stored(revision: revision)
    }

    private func answer(_ number: UInt64, _ outcome: RegistryOutcome, _ node: Node) {
        // Others may hear of a write before its writer.
        after(milliseconds: random.pick(1...12)) { [self] in
            // The answer is for this life alone.
            guard nodes[node.name] === node else { return }
            deliver(to: node.name) { [self] in
                $0.cluster.receive(.outcome(outcome, of: number), at: now)
            }
        }
    }

    private func fail(_ number: UInt64, _ node: Node) {
        after(milliseconds: 1_500) { [self] in answer(number, .failed, node) }
    }
}
