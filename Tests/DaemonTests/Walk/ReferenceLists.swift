import JSON

// Lists, single entries, and changes that touch no media.
extension ReferenceRoom {
    /// Lists participants: first those who have joined, then those who wait.
    func listParticipants(_ call: ReferenceCall) -> JSON {
        let wanted = people.filter { person in
            let state = person.isAwaited ? "awaited" : "joined"
            return (call.params["state"]?.word ?? state) == state
                && (call.params["role"]?.word ?? person.role) == person.role
        }
        let inOrder = wanted.filter { !$0.isAwaited } + wanted.filter(\.isAwaited)
        return ["participants": .array(inOrder.map(shown))]
    }

    /// Gives a participant another name or other custom data; `null` unsets them.
    mutating func updateParticipant(_ call: ReferenceCall) throws(Refusal) -> JSON {
        if call["by"] != call["participant"] { try check(call, "update") }
        let id = try target(call).id
        change(id) { person in
            if let name = call.params["name"] { person.name = name.word ?? "" }
            if let custom = call.params["custom"] { person.custom = custom == .null ? [:] : custom }
        }
        let person = try target(call)
        tell(
            "participant.changed",
            to: audience(of: person),
            ["participant": .string(id), "participantInfo": shown(person)]
        )
        return ["participantInfo": shown(person)]
    }

    /// Makes a call for each of several participants, and answers for each; a caller that may make
    /// none of them is refused once.
    mutating func forEach(
        _ call: ReferenceCall,
        _ body: (inout ReferenceRoom, ReferenceCall, ReferenceRoom) throws(Refusal) -> JSON
    ) throws(Refusal) -> JSON {
        var results: [JSON] = []
        for id in call.params["participants"]?.list ?? [] {
            var single = call
            single.params["participants"] = nil
            single.params["participant"] = id
            var result: [String: JSON] = ["participant": id]
            do throws(Refusal) {
                let former = self
                _ = try body(&self, single, former)
            } catch {
                if results.isEmpty, error.reason == "not-permitted" { throw error }
                result["error"] = error.shown
            }
            results.append(.object(result))
        }
        return ["results": .array(results), "fence": "$fence"]
    }
}

// The whole of somebody's subscriptions.
extension ReferenceRoom {
    func listSubscriptions(_ call: ReferenceCall) throws(Refusal) -> JSON {
        let viewer = try target(call).id
        let own = subscriptions.filter { $0.participant == viewer }
        return ["subscriptions": .array(own.map(shown))]
    }

    private func shown(_ subscription: Subscription) -> JSON {
        var shown: [String: JSON] = [
            "subscription": .string(subscription.id),
            "participant": .string(subscription.participant),
            "stream": .string(subscription.stream), "followsTalkers": false,
        ]
        for kind in ["audio", "video"] {
            shown[kind] = .bool(!subscription.off.contains(kind))
            shown["\(kind)Mid"] = subscription.mids[kind].json
        }
        return .object(shown)
    }

    /// Ends what is not named, then begins what is; streams with named slots first.
    mutating func setSubscriptions(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try checkOwn(call, call["participant"])
        let viewer = try target(call)
        try checkReceives(viewer)
        let wanted = call.params["subscriptions"]?.list ?? []
        let named = wanted.map { $0["stream"]?.word ?? "" }
        subscriptions.removeAll { $0.participant == viewer.id && !named.contains($0.stream) }
        let hasSlots: (Int) -> Bool = { wanted[$0].members.keys.contains { $0.hasSuffix("Mid") } }
        var results: [Int: JSON] = [:]
        for index in wanted.indices.filter(hasSlots) + wanted.indices.filter({ !hasSlots($0) }) {
            results[index] = watch(wanted[index], viewer)
        }
        settle(from: before, because: "")
        return ["results": .array(wanted.indices.compactMap { results[$0] }), "fence": "$fence"]
    }

    /// Begins a subscription, or goes on with the one that there is.
    private mutating func watch(_ wanted: JSON, _ viewer: Person) -> JSON {
        var result: [String: JSON] = ["stream": wanted["stream"] ?? .null]
        let place = subscriptions.firstIndex {
            $0.participant == viewer.id && $0.stream == wanted["stream"]?.word
        }
        do throws(Refusal) {
            let found: Int
            if let place {
                found = place
                if let stream = streams.first(where: { $0.id == subscriptions[place].stream }) {
                    takeFreeSlots(for: &subscriptions[place], stream)
                }
            } else {
                subscriptions.append(try subscription(to: wanted.members, of: viewer))
                found = subscriptions.count - 1
            }
            result["subscription"] = .string(subscriptions[found].id)
            result["audioMid"] = subscriptions[found].mids["audio"].json
            result["videoMid"] = subscriptions[found].mids["video"].json
        } catch {
            result["error"] = error.shown
        }
        return .object(result)
    }
}

extension Refusal {
    /// The refusal as one of several results; its text and details are not compared.
    fileprivate var shown: JSON {
        ["code": .integer(Int64(code)), "message": "$any", "data": "$any"]
    }
}
