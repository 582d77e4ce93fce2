/// A participant who sent usable media, with the times of its presence.
struct Person: Equatable, Sendable {
    var participant: String
    var name: String
    /// Times of presence in seconds of the session; sorted and disjoint.
    var stays: [Range<Double>]
}

extension Person {
    /// Returns the participants of a session in the order in which they joined.
    ///
    /// Participants without usable media are left out: an audience would fill the picture.
    static func all(_ session: RecordedSession, _ footage: Footage) -> [Person] {
        let clips = Dictionary(grouping: footage.clips) { $0.participant }
        let events = Dictionary(
            grouping: session.events.filter { $0.type == "joined" || $0.type == "left" }
        ) { $0.participant ?? "" }
        var names: [String: String] = [:]
        for event in session.events where event.type == "joined" {
            if let participant = event.participant { names[participant] = event.name }
        }
        for file in session.files where file.name?.isEmpty == false {
            names[file.participant] = file.name
        }
        let people = clips.map { participant, clips in
            let name = names[participant] ?? ""
            return Person(
                participant: participant,
                name: name.isEmpty ? participant : name,
                stays: stays(clips, events[participant] ?? [], footage)
            )
        }
        return people.sorted { left, right in
            let (one, other) = (left.stays[0].lowerBound, right.stays[0].lowerBound)
            return one == other ? left.participant < right.participant : one < other
        }
    }

    /// Returns the times of presence, from events and media; at least one.
    private static func stays(
        _ clips: [Clip],
        _ events: [RecordedEvent],
        _ footage: Footage
    ) -> [Range<Double>] {
        var stays = clips.map(\.span)
        var since: Double?
        for event in events {
            let time = min(max(0, event.time - footage.origin), footage.duration)
            if event.type == "joined" {
                since = since ?? time
            } else if let begin = since {
                if begin < time { stays.append(begin..<time) }
                since = nil
            }
        }
        if let begin = since, begin < footage.duration {
            stays.append(begin..<footage.duration)
        }
        var joined: [Range<Double>] = []
        for stay in stays.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, stay.lowerBound <= last.upperBound {
                let end = max(last.upperBound, stay.upperBound)
                joined[joined.count - 1] = last.lowerBound..<end
            } else {
                joined.append(stay)
            }
        }
        return joined
    }
}
