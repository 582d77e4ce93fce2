public import Contract
public import JSON

// One convenience method for each call of the contract.

extension SFUClient {
    public func serverInfo() async throws(ClientError) -> ServerInfo.Result {
        try await call(ServerInfo.self, Empty())
    }

    /// Returns the nodes of the cluster as this one sees them.
    public func nodes() async throws(ClientError) -> NodeList.Result {
        try await call(NodeList.self, Empty())
    }

    /// Returns the server's contract as an OpenRPC document.
    public func contract() async throws(ClientError) -> JSON {
        try await call(ServerDescribe.self, Empty()).document
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

    /// Replaces the server's program, after which this connection ends.
    ///
    /// - Parameter binary: Absolute path of the program; `nil` for the one that was started.
    /// - Throws: `ClientError`, as all calls do.
    public func upgrade(binary: String? = nil) async throws(ClientError) {
        _ = try await call(ServerUpgrade.self, .init(binary: binary))
    }

    /// Takes `drain` back.
    public func undrain() async throws(ClientError) {
        _ = try await call(ServerUndrain.self, Empty())
    }
}

extension SFUClient {
    public func createRoom(
        _ room: RoomID,
        settings: RoomSettingsChange? = nil,
        custom: CustomItems? = nil
    ) async throws(ClientError) -> RoomInfo {
        try await call(RoomCreate.self, .init(room: room, settings: settings, custom: custom))
    }

    public func room(_ room: RoomID) async throws(ClientError) -> RoomInfo {
        try await call(RoomGet.self, .init(room: room))
    }

    /// Returns a summary of each room, in the order of their names.
    public func rooms(state: RoomState? = nil) async throws(ClientError) -> [RoomSummary] {
        try await all(RoomList.self, .init(state: state))
    }

    /// Returns a room's participants, those who wait to be let in last.
    public func participants(
        room: RoomID,
        state: JoinState? = nil
    ) async throws(ClientError) -> [ParticipantInfo] {
        try await all(ParticipantList.self, .init(room: room, state: state))
    }

    @discardableResult
    public func closeRoom(
        _ room: RoomID,
        by: ParticipantID? = nil,
        detail: ShortText? = nil
    ) async throws(ClientError) -> Done {
        try await call(RoomClose.self, .init(room: room, by: by, detail: detail))
    }
}

extension SFUClient {
    public func join(
        _ params: ParticipantJoin.Params
    ) async throws(ClientError) -> ParticipantJoin.Result {
        try await call(ParticipantJoin.self, params)
    }

    public func update(
        _ params: ParticipantUpdate.Params
    ) async throws(ClientError) -> ParticipantInfo {
        try await call(ParticipantUpdate.self, params).participantInfo
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
        try await all(StreamList.self, .init(room: room))
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

    /// Makes the whole of a participant's explicit subscriptions in one call.
    public func setSubscriptions(
        _ params: SubscriptionSet.Params
    ) async throws(ClientError) -> [SubscriptionSet.Watched] {
        try await call(SubscriptionSet.self, params).results
    }

    /// Returns a participant's subscriptions, oldest first.
    public func subscriptions(
        room: RoomID,
        participant: ParticipantID
    ) async throws(ClientError) -> [SubscriptionInfo] {
        try await all(SubscriptionList.self, .init(room: room, participant: participant))
    }

    /// Returns a participant's transports, with what their m-lines carry.
    public func transports(
        room: RoomID,
        participant: ParticipantID
    ) async throws(ClientError) -> [TransportInfo] {
        try await all(TransportList.self, .init(room: room, participant: participant))
    }

    /// Returns a room's message topics, or those that one participant is subscribed to.
    public func topics(
        room: RoomID,
        participant: ParticipantID? = nil
    ) async throws(ClientError) -> [TopicInfo] {
        try await all(MessageTopics.self, .init(room: room, participant: participant))
    }

    /// Returns the live streams of a room, or of all rooms.
    public func streamings(room: RoomID? = nil) async throws(ClientError) -> [StreamingInfo] {
        try await all(StreamingList.self, .init(room: room))
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
        var params = StatsGet.Params(
            room: room,
            participant: participant,
            subscription: subscription
        )
        var whole = StatsGet.Result()
        repeat {
            let page = try await call(StatsGet.self, params)
            whole.transports += page.transports
            whole.streams += page.streams
            whole.subscriptions += page.subscriptions
            params.after = page.next
        } while params.after != nil
        return whole
    }

    /// Makes a participant's slots follow the active speakers; without any slots, ends it.
    @discardableResult
    public func followTalkers(_ params: TalkersSubscribe.Params) async throws(ClientError) -> Done {
        try await call(TalkersSubscribe.self, params)
    }
}
