import WorkerInterface

// Live streaming: a tap whose media is sent to an RTMP server.

extension Room {
    /// Request for a live stream; `nil` values get a default.
    package struct StreamingRequest: Sendable {
        package var url: String
        package var layout: String?
        /// URL of a page to show instead of participants.
        package var page: String?
        /// Video size, in pixels.
        package var width: Int?
        package var height: Int?
        /// Video bitrate, in bits a second.
        package var bitrate: Int?

        package init(url: String) { self.url = url }
    }

    /// Limits and count of live streams, shared by all rooms.
    package struct StreamingService: Sendable {
        /// Permitted URL schemes.
        package var schemes = ["rtmp", "rtmps"]
        /// Concurrent live streams of all rooms.
        package var limit = 10
        /// Concurrent live streams of one room.
        package var roomLimit = 4
        package var open = 0

        package init() {}
    }

    /// Bounds of a live stream's video.
    package enum StreamingBounds {
        /// Width or height, in pixels; even.
        package static let side = 160...1_920
        package static let pixels = 1_920 * 1_080
        /// Bitrate, in bits a second.
        package static let bitrate = 100_000...20_000_000
    }

    /// Live streams of the room, in the order in which they began.
    package var streamings: [Tap] { taps.streamings }

    /// Whether a server has accepted at least one live stream.
    package var isStreaming: Bool { streamings.contains { !$0.isAwaited } }

    private var isStartingStreaming: Bool { streamings.contains(where: \.isAwaited) }

    mutating func startStreaming(
        _ request: StreamingRequest,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        try check(actor, may: .stream, orElse: Self.mayNotStream)
        let target = try StreamTarget(request, schemes: transaction.shared.streaming.schemes)
        try checkStreamingInProcess()
        try checkHasNotEnded()
        guard !streamings.contains(where: { $0.target?.url == target.url }) else {
            throw CallError(
                code: 5122,
                reason: "already-streaming",
                message: "room \"\(name)\" is being streamed to that URL already"
            )
        }
        guard var service = transaction.shared.taps else { throw .noStreamer }
        let limits = transaction.shared.streaming
        guard limits.open < limits.limit else { throw .limitReached("streamings", limits.limit) }
        guard streamings.count < limits.roomLimit else {
            throw .limitReached("streamingsPerRoom", limits.roomLimit)
        }
        transaction.shared.streaming.open += 1
        service.lastID += 1
        transaction.shared.taps = service
        let tap = Tap(
            id: service.lastID,
            name: "live-\(RandomText.word(&transaction.shared.random))",
            directory: "",
            started: transaction.shared.unixTime,
            by: actor,
            purpose: .streaming(target),
            streams: nil,
            isAwaited: true
        )
        begin(tap, in: service.worker, &transaction)
        return .streaming(tap.id)
    }

    mutating func stopStreaming(
        _ name: String?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(actor, may: .stream, orElse: Self.mayNotStream)
        try checkStreamingInProcess()
        let ending = streamings.filter { name == nil || $0.name == name }
        guard !ending.isEmpty else {
            throw CallError(
                code: 5124,
                reason: "not-streaming",
                message: "room \"\(self.name)\" is not being streamed"
                    + (name.map { " as \"\($0)\"" } ?? "")
            )
        }
        for tap in ending {
            end(tap: tap.id, &transaction)
            let reason = EndReason.requested
            transaction.announce(
                .streamingStopped(tap, reason: reason, by: actor),
                to: .everyone
            )
        }
        begin(.streamingStop, &transaction)
    }

    private static let mayNotStream = CallError.notPermitted(
        "streaming needs the permission stream"
    )

    private func checkStreamingInProcess() throws(CallError) {
        guard !isInProcess(.streamingStop) else { throw .inProcess(5123, "streaming.stop") }
        guard !isStartingStreaming else { throw .inProcess(5121, "streaming.start") }
    }

    func interrupted(tap id: OutputID, _ cause: String, _ transaction: inout RoomTransaction) {
        guard let tap = taps[id] else { return }
        transaction.announce(.streamingInterrupted(tap, cause: cause), to: .everyone)
    }

    func resumed(tap id: OutputID, _ transaction: inout RoomTransaction) {
        guard let tap = taps[id] else { return }
        transaction.announce(.streamingResumed(tap), to: .everyone)
    }
}

extension StreamTarget {
    /// Makes a target from a request, or throws the invalid field; the error omits the URL.
    fileprivate init(_ request: Room.StreamingRequest, schemes: [String]) throws(CallError) {
        guard let url = StreamURL(request.url) else {
            throw .streamingInvalid("url", "is no URL with a server and a path")
        }
        guard schemes.contains(url.scheme) else {
            throw .streamingInvalid("url", "has to begin with one of: \(Self.list(schemes))")
        }
        let layout = try Self.layout(request)
        let (width, height) = Self.size(request.width, request.height)
        for (field, side) in [("width", width), ("height", height)] {
            guard Self.isSide(side) else {
                let range = Room.StreamingBounds.side
                throw .streamingInvalid(
                    field,
                    "is no even number from \(range.lowerBound) to \(range.upperBound)"
                )
            }
        }
        guard width * height <= Room.StreamingBounds.pixels else {
            throw .streamingInvalid("height", "makes a picture larger than 1920x1080")
        }
        let bitrate = request.bitrate ?? Self.usualBitrate(width, height)
        let range = Room.StreamingBounds.bitrate
        guard range.contains(bitrate) else {
            throw .streamingInvalid(
                "bitrate",
                "is no number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        self.init(url: url, layout: layout, width: width, height: height, bitrate: bitrate)
    }

    /// Returns the layout.
    ///
    /// `page` is the word of a layout that needs a browser, which sfud does not have. It is also
    /// the default where a page is named.
    private static func layout(_ request: Room.StreamingRequest) throws(CallError) -> Layout {
        let page = "page"
        let word = request.layout ?? (request.page == nil ? Layout.stage.rawValue : page)
        guard word != page else {
            throw CallError(
                code: 4501,
                reason: "not-implemented",
                message: "the layout \"page\" is not implemented",
                details: ["field": .text(request.layout == nil ? "page" : "layout")]
            )
        }
        guard let layout = Layout(rawValue: word) else {
            let words = Layout.allCases.map(\.rawValue).joined(separator: ", ")
            throw .streamingInvalid("layout", "is none of: \(words)")
        }
        guard request.page == nil else {
            throw .streamingInvalid("page", "belongs to the layout \"page\" alone")
        }
        return layout
    }

    private static func list(_ schemes: [String]) -> String {
        schemes.map { "\($0)://" }.joined(separator: ", ")
    }

    /// Returns the video size; a missing side follows from 16:9.
    private static func size(_ width: Int?, _ height: Int?) -> (Int, Int) {
        switch (width, height) {
        case (nil, nil): (1_280, 720)
        case (let width?, let height?): (width, height)
        case (let width?, nil): (width, isSide(width) ? (width * 9 / 16 + 1) / 2 * 2 : width)
        case (nil, let height?): (isSide(height) ? (height * 16 / 9 + 1) / 2 * 2 : height, height)
        }
    }

    private static func isSide(_ side: Int) -> Bool {
        Room.StreamingBounds.side.contains(side) && side.isMultiple(of: 2)
    }

    /// Returns the default bitrate: 0.1 bit per pixel at 30 frames a second, 2.8 Mbit/s for
    /// 1280x720.
    private static func usualBitrate(_ width: Int, _ height: Int) -> Int {
        let range = Room.StreamingBounds.bitrate
        return min(max(width * height * 3, range.lowerBound), range.upperBound)
    }
}

extension CallError {
    /// Makes the refusal for an invalid parameter; `field` is its name.
    fileprivate static func streamingInvalid(_ field: String, _ cause: String) -> Self {
        Self(
            code: 5125,
            reason: "invalid-configuration",
            message: "\(field) \(cause)",
            details: ["field": .text(field)]
        )
    }
}
