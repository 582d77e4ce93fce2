package import RTP
package import WorkerInterface

extension Room {
    /// Account of a participant's stay, for `participant.left`.
    ///
    /// Minutes follow from the lifetimes of streams and subscriptions, and are added up when one
    /// begins or ends; between those nothing is counted. The paths' quality and the freezes come
    /// from the workers, once for each transport, when it has been closed.
    package struct Session: Sendable, Codable {
        package let began: Instant
        package internal(set) var sent = MediaTimes()
        package internal(set) var received = MediaTimes()
        /// Quality of the transports that have been closed; `nil` while there are none.
        private var settled: LinkQuality?
        /// Ended transports whose quality is not known yet.
        package private(set) var ending: [TransportLocation] = []

        init(began: Instant) { self.began = began }

        /// Quality of the transports that have been closed.
        package var quality: LinkQuality { settled ?? LinkQuality() }

        mutating func end(_ transport: TransportLocation) { ending.append(transport) }

        /// Adds the quality of an ended transport; one that is not its own has no effect.
        mutating func settle(_ transport: TransportLocation, _ quality: LinkQuality?) {
            guard let index = ending.firstIndex(of: transport) else { return }
            ending.remove(at: index)
            guard let quality else { return }
            var sum = self.quality
            sum += quality
            settled = sum
        }
    }

    /// Kind of media in the account of a session.
    package enum SessionMedia: String, Hashable, Sendable, CaseIterable, Codable {
        case audio
        case video
        /// Video of a screen.
        case screen

        init(_ kind: MediaKind, isScreen: Bool) {
            switch kind {
            case .audio: self = .audio
            case .video: self = isScreen ? .screen : .video
            }
        }
    }

    /// Times by kind of media; streams at the same time add up.
    package struct MediaTimes: Hashable, Sendable, Codable {
        private var times: [SessionMedia: RunningTime] = [:]

        /// Returns the sum for a kind until now, in seconds.
        package func seconds(_ media: SessionMedia, until now: Instant) -> Double {
            times[media]?.seconds(until: now) ?? 0
        }

        mutating func change(
            from before: Set<SessionMedia>,
            to after: Set<SessionMedia>,
            at now: Instant
        ) {
            for media in SessionMedia.allCases
            where before.contains(media) != after.contains(media) {
                times[media, default: RunningTime()].add(after.contains(media) ? 1 : -1, at: now)
            }
        }
    }

    /// Sum of the times of any number of things that run.
    package struct RunningTime: Hashable, Sendable, Codable {
        private var nanoseconds: Int64 = 0
        private var running: Int64 = 0
        private var changed = Instant(nanoseconds: 0)

        /// Returns the sum until now, in seconds.
        package func seconds(until now: Instant) -> Double {
            Double(nanoseconds + running * now.nanoseconds(since: changed)) / 1e9
        }

        /// Begins with 1 more that run, or ends one with -1.
        mutating func add(_ number: Int64, at now: Instant) {
            nanoseconds += running * now.nanoseconds(since: changed)
            running += number
            changed = now
        }
    }
}

// Changes of the account.
extension Room {
    /// Counts what a stream carries; `nil` stands for a stream that does not exist.
    mutating func countSent(_ before: Stream?, _ after: Stream?, at now: Instant) {
        guard let id = (before ?? after)?.participant else { return }
        let (old, new) = (before?.media ?? [], after?.media ?? [])
        guard old != new else { return }
        participants[id]?.session.sent.change(from: old, to: new, at: now)
    }

    /// Counts what a subscription may receive from now on.
    mutating func countReceived(
        _ media: Set<SessionMedia>,
        by subscription: inout Subscription,
        at now: Instant
    ) {
        let before = subscription.counted
        guard before != media else { return }
        subscription.counted = media
        participants[subscription.participant]?.session.received
            .change(from: before, to: media, at: now)
    }

    /// Counts the end of one kind of a subscription's media.
    mutating func countEnd(
        of kind: MediaKind,
        in subscription: inout Subscription,
        at now: Instant
    ) {
        let rest = subscription.counted.filter { ($0 == .audio) != (kind == .audio) }
        countReceived(rest, by: &subscription, at: now)
    }

    /// Adds the quality of an ended transport, if its participant is still there.
    package mutating func settle(_ transport: TransportLocation, _ quality: LinkQuality?) {
        guard let id = placement.ending.removeValue(forKey: transport) else { return }
        participants[id]?.session.settle(transport, quality)
    }
}

extension Room.Stream {
    /// Kinds of media that it carries.
    fileprivate var media: Set<Room.SessionMedia> {
        var media: Set<Room.SessionMedia> = []
        for kind in MediaKind.allCases where publication(kind) != nil {
            media.insert(Room.SessionMedia(kind, isScreen: isScreen))
        }
        return media
    }
}
