internal import RTP

/// What becomes of one packet at one slot.
enum Admission {
    case forward(Renumbering.Span, index: Int64)
    case drop(DropReason)
}

extension Slot {
    /// The packet index of a packet of the stretch that is being forwarded, as nearly all are.
    func index(of info: borrowing PacketInfo) -> Int64? {
        let encoding = Int32(bitPattern: info.encoding)
        switch source {
        case .flowing(encoding), .switching(from: encoding, to: _):
            return renumbering.index(of: info)
        case .idle, .waiting, .flowing, .switching:
            return nil
        }
    }

    /// Decides about one packet of its publication.
    ///
    /// `wanted` is the encoding to forward when it can be switched to.
    mutating func admit(
        _ info: borrowing PacketInfo,
        wanted: Int32,
        after earlier: inout Renumbering.Earlier
    ) -> Admission {
        let encoding = Int32(bitPattern: info.encoding)
        let flags = info.flags
        let isStart = kind == .audio || flags.contains(.keyframeStart)
        switch source {
        case .idle:
            return .drop(.noSubscriber)
        case .waiting:
            guard isStart else {
                return late(info, otherwise: .awaitingKeyframe, after: earlier)
            }
            let isWanted = encoding == wanted || wanted < 0
            source = isWanted ? .flowing(encoding) : .switching(from: encoding, to: wanted)
            return begin(info, after: &earlier)
        case .flowing(encoding), .switching(from: encoding, to: _):
            return follow(info, after: &earlier)
        case .switching(from: _, to: encoding) where isStart:
            source = .flowing(encoding)
            return begin(info, after: &earlier)
        case .flowing, .switching:
            return late(info, otherwise: .layerNotSelected, after: earlier)
        }
    }

    private mutating func follow(
        _ info: borrowing PacketInfo,
        after earlier: inout Renumbering.Earlier
    ) -> Admission {
        guard renumbering.current.matches(info) else { return begin(info, after: &earlier) }
        guard let (span, index) = renumbering.place(info, after: earlier) else {
            return .drop(.tooOld)
        }
        return .forward(span, index: index)
    }

    /// A packet of a stretch that is over still fills its hole.
    private func late(
        _ info: borrowing PacketInfo,
        otherwise reason: DropReason,
        after earlier: borrowing Renumbering.Earlier
    ) -> Admission {
        guard renumbering.hasStarted,
            let (span, index) = renumbering.place(info, after: earlier)
        else { return .drop(reason) }
        return index < renumbering.highest ? .forward(span, index: index) : .drop(reason)
    }

    private mutating func begin(
        _ info: borrowing PacketInfo,
        after earlier: inout Renumbering.Earlier
    ) -> Admission {
        let current = renumbering.current
        let exact =
            current.matches(info) ? info.timestamp &+ current.timestampOffset : nil as UInt32?
        isLayerNoted = false
        renumbering.begin(
            with: info,
            clockRate: kind == .audio ? 48_000 : 90_000,
            timestamp: exact,
            after: &earlier
        )
        guard let (span, index) = renumbering.place(info, after: earlier) else {
            return .drop(.tooOld)
        }
        return .forward(span, index: index)
    }
}
