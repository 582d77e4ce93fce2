public import Contract

// One convenience method for each call of the contract.

extension SFUClient {
    public func serverInfo() async throws(ClientError) -> ServerInfo.Result {
        try await call(ServerInfo.self, Empty())
    }

    public func serverStats() async throws(ClientError) -> ServerStats.Result {
        try await call(ServerStats.self, Empty())
    }

    /// Makes the server refuse new rooms.
    ///
    /// - Parameter deadline: Seconds until remaining rooms end; `nil` for no deadline.
    /// - Throws: `ClientError`, as all calls do.
    public func drain(deadline: Double? = nil) async throws(ClientError) {
        _ = try await call(ServerDrain.self, .init(deadline: deadline))
    }
}

extension SFUClient {
    public func createRoom(
        _ room: RoomID,
        settings: RoomSettingsChange? = nil
    ) async throws(ClientError) -> RoomInfo {
        try await call(RoomCreate.self, .init(room: room, settings: settings))
    }

    public func room(_ room: RoomID) async throws(ClientError) -> RoomInfo {
        try await call(RoomGet.self, .init(room: room))
    }

    public func rooms() async throws(ClientError) -> [RoomInfo] {
        try await call(RoomList.self, Empty()).rooms
    }

    @discardableResult
    public func closeRoom(
        _ room: RoomID,
        by: ParticipantID? = nil,
        reason: ShortText? = nil
    ) async throws(ClientError) -> Done {
        try await call(RoomClose.self, .init(room: room, by: by, reason: reason))
    }
}

extension SFUClient {
    public func join(
        _ params: ParticipantJoin.Params
    ) async throws(ClientError) -> ParticipantJoin.Result {
        try await call(ParticipantJoin.self, params)
    }

    @discardableResult
    public func leave(
        room: RoomID,
        participant: ParticipantID
    ) async throws(ClientError) -> Done {
        try await call(ParticipantLeave.self, .init(room: room, participant: participant))
    }

    public func offer(
        _ params: TransportOffer.Params
    ) async throws(ClientError) -> TransportOffer.Result {
        try await call(TransportOffer.self, params)
    }

    @discardableResult
    public func closeTransport(
        room: RoomID,
        participant: ParticipantID,
        transport: TransportName? = nil
    ) async throws(ClientError) -> Done {
        try await call(
            TransportClose.self,
            .init(room: room, participant: participant, transport: transport)
        )
    }
}

extension SFUClient {
    public func streams(room: RoomID) async throws(ClientError) -> [StreamInfo] {
        try await call(StreamList.self, .init(room: room)).streams
    }

    @discardableResult
    public func updateStream(
        room: RoomID,
        stream: StreamID,
        audio: Bool? = nil,
        video: Bool? = nil
    ) async throws(ClientError) -> Done {
        try await call(
            StreamUpdate.self,
            .init(room: room, stream: stream, audio: audio, video: video)
        )
    }

    @discardableResult
    public func unpublish(
        room: RoomID,
        stream: StreamID,
        by: ParticipantID? = nil
    ) async throws(ClientError) -> Done {
        try await call(StreamUnpublish.self, .init(room: room, stream: stream, by: by))
    }
}

extension SFUClient {
    public func subscribe(
        _ params: SubscriptionAdd.Params
    ) async throws(ClientError) -> SubscriptionAdd.Result {
        try await call(SubscriptionAdd.self, params)
    }

    @discardableResult
    public func updateSubscription(
        _ params: SubscriptionUpdate.Params
    ) async throws(ClientError) -> Done {
        try await call(SubscriptionUpdate.self, params)
    }

    @discardableResult
    public func unsubscribe(
        room: RoomID,
        subscription: SubscriptionID
    ) async throws(ClientError) -> Done {
        try await call(SubscriptionRemove.self, .init(room: room, subscription: subscription))
    }

    /// Explains the video layer that a subscription receives, and what limits it.
    public func explain(
        room: RoomID,
        subscription: SubscriptionID
    ) async throws(ClientError) -> SubscriptionExplain.Result {
        try await call(SubscriptionExplain.self, .init(room: room, subscription: subscription))
    }

    public func stats(
        room: RoomID,
        participant: ParticipantID? = nil,
        subscription: SubscriptionID? = nil
    ) async throws(ClientError) -> StatsGet.Result {
        try await call(
            StatsGet.self,
            .init(room: room, participant: participant, subscription: subscription)
        )
    }

    /// Makes a participant's slots follow the active speakers; without any slots, ends it.
    @discardableResult
    public func followTalkers(_ params: TalkersSubscribe.Params) async throws(ClientError) -> Done {
        try await call(TalkersSubscribe.self, params)
    }
}
