// Written by `make bindings`: change the comments there, not the texts here.

extension ContractTexts {
    /// Doc comments of the contract's types and members, by their Swift names.
    static let table = #"""
        Audience: The participants that an event concerns, the caller included.
        Audience.Others: An audience by those who are not in it.
        Audience.all: Everybody in the room except those who wait to be let in.
        AudioInfo: A stream's audio.
        AudioInfo.codec: Codec of the last received packet; before the first, the negotiated one.
        AudioInfo.enabled: Whether the publisher has it switched on and no moderator has muted it.
        AudioRight: Right to send a microphone: `true`, `false`, or an object with its bound.
        AudioRight.Bounds: The object that stands for a right with bounds.
        AudioRight.Bounds.maxBitrate: Bits a second of the encoder.
        AudioRight.maxBitrate: Bits a second of the encoder.
        CodecName: Codec names on the IPC.
        ConnectionState: State of a participant's connection.
        ConnectionState.connecting: A transport waits for ICE and DTLS.
        ConnectionState.none: No transport exists.
        CustomItems: Opaque JSON object that a signalling server attaches to a room, a participant
            or a stream. It has at most 65,536 bytes as JSON, and 32 levels of nesting.
        Done: The result of a method that returns no data. `fence` is present if the call revoked
            a right.
        Done.durable: `false` if the change is not in the room's journal yet. It is lost if the
            node is lost before the registry is back. Absent otherwise, and without a cluster.
        Empty: The empty object, `{}`.
        EncodingStats: Statistics of one received encoding.
        EncodingStats.bitrate: Bits a second.
        EncodingStats.fractionLost: Fraction lost in the interval of sfud's last receiver report:
            0 to 1.
        EncodingStats.frameRate: Frames a second.
        EncodingStats.jitter: Milliseconds.
        EncodingStats.nacks: Packets that sfud requested again.
        EncodingStats.plis: Keyframes that sfud requested.
        EncodingStats.width: Pixels; 0 for audio and while unknown.
        ErrorData: Members of `data` that every error has; some have others besides.
        ErrorData.reason: Stable kebab-case word for programs: one of `x-errors`, each for one
            condition.
        EventByParticipant: Common initializer of events that name only the participant who acted.
        EventData: The data of an event, with the event's name.
        EventPattern: The name of an event, or a prefix of names that ends in `.*`:
            `room.created`, `floor.*`.
        EventsSubscribe: Subscribes this connection to the events of rooms.
        EventsSubscribe.Params.events: Events to receive, by name or as a prefix like `room.*`;
            absent for all. `resync` always comes. `seq` has gaps where an event is left out.
        EventsSubscribe.Params.rooms: Rooms to subscribe to; absent for all rooms.
        EventsSubscribe.Params.since: Last `seq` seen of each room; the events after it are sent
            first.
        Fence: Time and packet count at which the media of a revoked right stopped.
        Fence.packets: Packets forwarded under the right before the call revoked it.
        Fence.silent: Nodes that have not confirmed it, whose media has stopped by itself; absent
            if all have.
        Fence.time: Unix time, in seconds.
        FloorCancel: Withdraws a request for the floor.
        FloorCancelled: `floor.cancelled`; also sent when a participant who had asked leaves.
        FloorDenied: `floor.denied`.
        FloorDeny: Refuses a request for the floor.
        FloorEvent: Common initializer of the `floor.…` events.
        FloorFinish: Gives the floor back.
        FloorFinished: `floor.finished`; also sent when the holder leaves.
        FloorGrant: Gives the floor to a participant who asked for it.
        FloorGranted: `floor.granted`.
        FloorInfo: The floor of a lecture.
        FloorInfo.granted: Participants who have it.
        FloorInfo.requested: Participants who asked for it, in order.
        FloorRelease: Takes the floor from its holder.
        FloorReleased: `floor.released`.
        FloorRequest: Asks for the floor of a lecture.
        FloorRequested: `floor.requested`.
        ForwardedLayer: A layer that is forwarded, by its names.
        ForwardedLayer.rid: Absent without simulcast.
        ForwardedLayer.spatial: Highest spatial layer that is forwarded, from 0; absent if the
            encoding has only one.
        ForwardingInfo: Time from a media packet's arrival to the first and the last copy of its
            batch being sent.
        ForwardingTime: Percentiles of the time that media spends in the daemon, in milliseconds.
        FrameRate: Highest frame rate that a subscriber wants, in frames a second: 1 to 240.
        FreezeHopName: Part of the way from the publisher's camera to the viewer's screen in which
            a picture froze.
        FreezeHopName.publisher-encoder: The publisher sent no frame, or no keyframe although
            asked.
        FreezeHopName.publisher-uplink: Packets of the publisher were lost or late.
        FreezeHopName.sfu: Packets waited or were dropped in sfud.
        FreezeHopName.viewer-decoder: All packets arrived in time, and the viewer still asked for
            keyframes.
        FreezeHopName.viewer-downlink: Packets to the viewer were lost or late, or its path
            carries less than the lowest layer.
        FreezeInfo: One freeze of a picture: no new frame reached the viewer.
        FreezeInfo.ongoing: Whether it is still going on.
        FreezeInfo.reason: Evidence for the hop, in words.
        FreezeInfo.seconds: Its length, or that so far.
        FreezeInfo.time: Unix time of its beginning, in seconds.
        HopFreezes: Freezes that are due to one hop.
        IPCError: Error of a refused call, as in the `error` member of a reply.
        IPCError.code: Number of the error: from the vendor contract, from JSON-RPC, or from 4000
            up.
        IPCError.details: Members of `data` other than `reason`.
        IPCError.message: Text for people; may change between versions.
        IPCError.reason: Stable kebab-case word for programs.
        IPCEvent: One event as received in a line.
        IPCEvent.audience: The participants whom it concerns.
        IPCEvent.room: Absent for an event of the server.
        IPCEvent.seq: Number of the event in its room, from 1 without gaps; 0 for an event of no
            room.
        IPCEvent.time: Unix time, in seconds.
        IPCMessage: A line that a client receives: a reply or an event.
        IPCMethod: A method of the contract: its name, its params and its result.
        IPCRefusal: The reply to a line that is not a valid request.
        IPCRefusal.id: Absent if it could not be read.
        IPCReply: The reply to a call.
        IPCReply.id: Absent if the request had no readable id.
        IPCRequest: One call as received in a line.
        IPCRequest.params: An object; empty if the call has no params.
        Identifier: An id on the IPC: 1 to 128 of `A-Z a-z 0-9 . _ : -`. `Kind` keeps ids of
            different things apart at compile time.
        Identifier<IdentifierKind.Participant>: Id of a participant, chosen by the caller; unique
            in its room.
        Identifier<IdentifierKind.Recording>: Id of a recording, assigned by sfud in
            `recording.start`; unique in the process.
        Identifier<IdentifierKind.Room>: Id of a room, chosen by the caller.
        Identifier<IdentifierKind.Stream>: Id of a stream, assigned by sfud in `transport.offer`;
            unique in its room.
        Identifier<IdentifierKind.Streaming>: Id of a live stream, assigned by sfud in
            `streaming.start`; unique in the process.
        Identifier<IdentifierKind.Subscription>: Id of a subscription, assigned by sfud in
            `subscription.add`; unique in its room.
        Identifier<IdentifierKind.Tap>: Id of an RTP forward, assigned by sfud in `tap.start`;
            unique in the process.
        Identifier<IdentifierKind.Transport>: Id of a transport, assigned by sfud in
            `transport.offer`; unique in its room.
        Identifier<PublishRights>: A right beyond sending and receiving; an unknown one is kept
            and grants nothing.
        Identifier<Role>: Name of a role.
        Identifier<RoleChange>: Id of a request to change role, assigned by sfud.
        IdentifierKind: Phantom types that keep ids apart.
        JoinState: Whether a participant has joined or waits to be let in.
        LayerInfo: Last measured properties of one encoding of a video.
        LayerInfo.bitrate: Bits a second.
        LayerInfo.frameRate: Frames a second.
        LayerInfo.rid: Absent without simulcast.
        LayerInfo.width: Pixels; 0 while unknown.
        LayerLimitReason: Constraint that keeps a subscriber from a higher layer.
        LayerLimitReason.approval: The viewer waits to be let in.
        LayerLimitReason.link: The link from the publisher's node to the viewer's does not carry
            more.
        LayerPreference: Upper bounds and priority that a subscriber asked for; absent members do
            not apply.
        LayerSwitch: One layer switch of a subscription.
        LayerSwitch.cause: The limit that began, or the one that ended.
        LayerSwitch.previous: `null` for no video.
        LayerSwitch.time: Unix time, in seconds.
        Limits: Ranges of numbers in params.
        LineInfo: An m-line as negotiated, and what it carries.
        LineInfo.direction: Direction in the answer, from sfud's side: on `recvonly` the
            participant sends.
        LineInfo.followsTalkers: Whether the slot follows the talkers; absent where the
            participant receives nothing.
        LineInfo.preferredResolution: Preferences of a slot that follows.
        LineInfo.source: Source of what the participant sends.
        LineInfo.stream: Stream that it belongs to; absent while it is held back.
        LineInfo.subscription: Subscription that the slot carries.
        LinkCondition: State of the link to a node.
        LinkCondition.none: None is needed so far, or it was lost.
        LinkCondition.own: The node that was asked.
        MeanAndWorst: Mean and worst of a figure over a session's RTCP reports.
        MediaDirection: The direction attribute of an m-line (RFC 8866 §6.7).
        Message: A message published to a topic of a room.
        Message.from: Sender; absent for the signalling server itself.
        Message.number: Number of the message in its room, counted from 1.
        Message.time: Unix time, in seconds.
        MessagePublish: Publishes a message to the subscribers of its topic, including the sender.
        MessagePublish.Params.payload: Any JSON value, of at most 65,536 bytes and 32 levels of
            nesting.
        MessagePublish.Params.persist: Whether the message is kept for later subscribers.
        MessagePublish.Params.to: Restricts delivery to those of these participants who are
            subscribed.
        MessageReceived: `message.received`.
        MessageSubscribe: Subscribes a participant to a topic; returns the kept messages, oldest
            first.
        MessageSubscribe.Result.durable: `false` if the change is not in the room's journal yet.
            It is lost if the node is lost before the registry is back. Absent otherwise, and
            without a cluster.
        MessageTopics: Returns a room's message topics, or those of one participant, in the order
            of their names.
        MessageTopics.Params.participant: Participant whose subscriptions are wanted; absent for
            all topics.
        MessageUnsubscribe: Ends a participant's subscription to a topic.
        Mid: Identification tag of an m-line (RFC 8843 §8.1): 1 to 48 printable ASCII bytes, no
            space.
        MidInfo: Result of the negotiation for one m-line.
        MidInfo.direction: Direction in the answer, from sfud's side: on `recvonly` the
            participant sends.
        MidInfo.kind: `audio`, `video`, or another media type from the offer.
        MidInfo.refused: Reason for `inactive`: `mode` or `event-type` (those of the participant
            and of the room let it send nothing here), `source` (it does not fit the kind),
            `codec` (sfud takes none of those offered) or `kind` (neither audio nor video).
        MidInfo.stream: Stream that the participant sends on this m-line.
        ModeratorTransfer: Makes another participant the moderator; `by`, the former moderator,
            becomes a participant.
        ModeratorTransferred: `moderator.transferred`.
        ModeratorTransferred.current: The new moderator.
        ModeratorTransferred.previous: The former moderator, now a participant.
        MuteSparing: Participants whom a room's mute spares besides its caller.
        MuteSparing.moderators: Everybody who is a moderator at the time.
        NodeCondition: State of a node as another sees it.
        NodeCondition.draining: It takes no new rooms.
        NodeCondition.lost: It has not been heard of for the time of its lease; others go on with
            its rooms.
        NodeInfo: A node of the cluster.
        NodeInfo.address: `ADDR:PORT` where it takes links.
        NodeInfo.beatAge: Seconds since its last sign of life in the registry.
        NodeInfo.boot: Its `boot` in `server.info`.
        NodeInfo.load: Share of time for which its workers are busy: 0 to 1.
        NodeInfo.roundTripMilliseconds: Round-trip time of the link, in milliseconds; absent
            without a link.
        NodeList: Lists the nodes of the cluster, by name; without a cluster there are none. It
            shows them as the node sees them that is asked.
        NodeList.Result.nodes: At most 64.
        NodeList.Result.registry: Whether the registry answers; absent without a cluster.
        OverloadInfo: Load of a worker.
        OverloadInfo.busy: Share of the last seconds in which the worker's thread ran or was ready
            to run: 0 to 1.
        OverloadInfo.lagMilliseconds: Least time that received datagrams wait, in milliseconds.
        OverloadInfo.videoKept: Share of the bitrate of all videos together that the worker still
            sends: 0 to 1.
        OverloadStep: Load-shedding level of an overloaded worker; each level includes those
            before it. Audio is never shed.
        OverloadStep.joins: New participants are refused.
        OverloadStep.layers: Some videos are sent in their lowest layer only.
        OverloadStep.video: Some videos are not sent at all.
        PacketCounters: Counters of packets and bytes since the start.
        PacketCounters.drops: Packets dropped, by cause.
        PacketCounters.kernelDrops: Datagrams that the kernel dropped because a socket's receive
            buffer was full.
        PacketCounters.paddingOut: Padding packets that probed the capacity of a subscriber's
            path.
        PacketCounters.relayDrops: Packets from other workers that were dropped, by cause.
        PacketCounters.relayedForwarded: Packets of `relayedIn` that were sent to at least one
            subscriber.
        PacketCounters.relayedIn: Packets received from other workers; `rtpIn` counts them at the
            worker that received them.
        PacketCounters.relayedOut: Packets handed to other workers, counted once for each worker.
        PacketCounters.rtpForwarded: Received RTP packets sent to at least one subscriber or
            handed to another worker.
        PacketCounters.rtpOut: Forwarded copies without retransmissions.
        PageLimit: Most elements of a page: 1 to 1,000; 1,000 by default. A page may end earlier,
            before 512 KiB.
        PagedParams: Params of a method that returns a list page by page.
        PagedResult: A page of a list.
        PagedResult.next: Cursor of the next page; absent at the end of the list.
        ParticipantApprove: Admits participants who wait to be let in.
        ParticipantApproved: `participant.approved`: a waiting participant was let in.
        ParticipantApproved.roomInfo: The room without its lists; absent if it is longer than 4
            KiB, and `room.get` has it.
        ParticipantAwaited: `participant.awaited`: a participant waits to be let in.
        ParticipantByParticipant: Params of methods on a participant, with the participant who
            asks for it if any.
        ParticipantChanged: `participant.changed`: a name or custom data changed.
        ParticipantConnection: `participant.connection`.
        ParticipantConnection.reason: Cause of a disconnection: a word such as `timeout` or
            `dtls-handshake-failed`.
        ParticipantDenied: `participant.denied`: a waiting participant was turned away.
        ParticipantDenied.detail: Free text of the caller.
        ParticipantDeny: Turns away participants who wait to be let in.
        ParticipantDeny.Params.detail: Free text that `participant.denied` passes on.
        ParticipantDeny.Params.targets: `participant`, or `participants`: a list or `"all"`.
        ParticipantDrop: Disconnects participants; they may join again.
        ParticipantDrop.Dropped.dropped: Whether the participant was in the room.
        ParticipantDrop.Params.detail: Free text that `participant.left` passes on; at most 256
            bytes.
        ParticipantDrop.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        ParticipantDrop.Result.results: One result for each participant, in the order of the call.
        ParticipantGet: Returns a participant.
        ParticipantHardMute: Mutes participants' audio or video, including tracks published later.
        ParticipantHardMuted: `participant.hardMuted`; `media` lists the kinds that were not muted
            before.
        ParticipantHardUnmute: Ends participants' hard mute of audio or video.
        ParticipantHardUnmuted: `participant.hardUnmuted`; `media` lists the kinds that were muted
            before.
        ParticipantInfo: A participant as results and events describe it.
        ParticipantInfo.hardMuted: Kinds of media that a moderator has muted.
        ParticipantInfo.joined: Unix time of the join, in seconds.
        ParticipantInfo.node: Node to which the participant's client connects; absent without a
            cluster.
        ParticipantJoin: Adds a participant, or takes over the one with that id.
        ParticipantJoin.IfPresent: Effect of a join under an id that is in the room.
        ParticipantJoin.IfPresent.refuse: The call is refused with 4009.
        ParticipantJoin.IfPresent.takeover: The participant is taken over, as after a reconnect.
        ParticipantJoin.Params.ifPresent: `takeover` by default.
        ParticipantJoin.Params.mode: `SEND_AND_RECV` by default.
        ParticipantJoin.Params.role: `participant` by default.
        ParticipantJoin.Params.snapshot: Whether the result has the room's lists; `true` by
            default.
        ParticipantJoin.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        ParticipantJoin.Result.node: Node to which the participant's client connects; absent
            without a cluster.
        ParticipantJoin.Result.roleRequest: Open request to the participant to take a role, made
            before a reconnect.
        ParticipantJoined: `participant.joined`: a participant joined, or joined again under the
            same id.
        ParticipantJoined.by: Participant who let it in.
        ParticipantJoined.rejoined: Whether the id was in the room already, as after a reconnect.
        ParticipantLeave: Removes a participant that leaves.
        ParticipantLeft: `participant.left`.
        ParticipantLeft.detail: Free text of the caller.
        ParticipantLeft.reason: `left`, `dropped`, `disconnected`, `denied`, `room-closed`,
            `replaced` or `shutdown`.
        ParticipantLeft.session: Account of its stay.
        ParticipantList: Returns a room's participants in the order of their joins, those who wait
            to be let in last.
        ParticipantList.Params.role: Role of the participants to list; absent for all.
        ParticipantList.Params.state: State of the participants to list; absent for both.
        ParticipantMedia: Params of participants' hard mute.
        ParticipantMedia.media: Kinds of media; at least one.
        ParticipantMedia.targets: `participant`, or `participants`: a list.
        ParticipantMode: Media that a participant may send and receive at all.
        ParticipantModeChanged: `participant.modeChanged`.
        ParticipantModeChanged.mode: The mode now.
        ParticipantModeChanged.previous: The mode before, and again the one now.
        ParticipantMoveWanted: `participant.moveWanted`: the participant's client is to connect at
            another node of the cluster. A complete offer on a new peer connection, for the same
            `transport`, is answered with that node's candidates and certificate. With `node-lost`
            the former connection is over. With `drain` it goes on until the new one is connected,
            which then takes over its streams, subscriptions and following slots: those of m-lines
            with the same `mid` and kind.
        ParticipantMoveWanted.node: Node that answers the offer.
        ParticipantMoveWanted.reason: A word: `node-lost` or `drain`.
        ParticipantOnly: Params of methods that a participant calls for itself.
        ParticipantRoleChanged: `participant.roleChanged`.
        ParticipantRoleChanged.previous: The role before, and again the one now.
        ParticipantRoleChanged.role: The role now.
        ParticipantSetMode: Changes whether a participant may send and receive.
        ParticipantUpdate: Changes a participant's name or custom data; its transports stay
            untouched.
        ParticipantUpdate.Result.durable: `false` if the change is not in the room's journal yet.
            It is lost if the node is lost before the registry is back. Absent otherwise, and
            without a cluster.
        ParticipantsByParticipant: Params of the pin methods.
        PathProtocol: Transport protocol of a path.
        PinAdd: Pins participants to the front of the list of active speakers.
        PinRemove: Unpins participants.
        PinsChanged: `pins.changed`: all pinned participants, in pin order.
        Priority: Priority of a video among those that a participant watches: 0 to 1000, the
            highest is served first.
        PublishRights: Media that a role may send, with upper bounds. The bounds beside `audio`,
            `video` and `screen` are those of a camera; `video` may repeat them as an object,
            whose members then count.
        PublishRights.camera: Right to send a camera, with its bounds from both places.
        PublishRights.maxBitrate: Bits a second.
        PublishRights.maxFrameRate: Frames a second.
        PublishRights.maxWidth: Pixels; larger layers are not forwarded.
        PublishRights.screen: Right to send a screen and its audio; the bounds are those of its
            video.
        PublishRights.simulcast: Whether videos may come in several encodings (RFC 8853); `true`
            by default.
        RecordedFile: File with one recorded track of a stream.
        RecordedFile.Gap: A period for which the file has no samples.
        RecordedFile.Gap.reason: `muted`, `lost` or `refused`.
        RecordedFile.Gap.start: Unix times, in seconds.
        RecordedFile.bytes: Length of what is on disk, in bytes.
        RecordedFile.duration: In seconds.
        RecordedFile.path: Absolute path.
        RecordedFile.start: Unix time of the first sample, in seconds.
        RecordingFailed: `recording.failed`: a recording that nobody waits for could not begin. An
            automatic recording is tried again while the room's session lasts, and is told once
            for each reason.
        RecordingFailed.reason: A word such as `limit-reached`, `no-recorder`, `disk-full` or
            `not-permitted`.
        RecordingFailed.recording: Absent if the recording was refused before it had an id.
        RecordingFiles: Lists the files of a recording.
        RecordingFiles.Result.files: Files in the order in which they were begun.
        RecordingFiles.Result.next: `after` of the next page; absent at the end.
        RecordingInfo: One recording of a room.
        RecordingInfo.State.starting: Directory and files are not ready yet.
        RecordingInfo.bytes: Bytes of all files.
        RecordingInfo.count: Number of all files, as of at most a second ago.
        RecordingInfo.directory: Absolute path.
        RecordingInfo.files: The first files; `recording.files` gives the rest.
        RecordingInfo.next: `after` of the next page of files; absent if there is none.
        RecordingInfo.started: Unix time, in seconds.
        RecordingList: Lists running recordings, and ended ones that are still remembered.
        RecordingList.Params.room: Room to list; absent for all rooms.
        RecordingList.Result.next: `after` of the next page; absent at the end.
        RecordingList.Result.recordings: Recordings in the order in which they started.
        RecordingStart: Starts recording a room or some of its streams, each track to a file of
            its own. The reply is sent when directory and files are ready, and `recording.started`
            follows it.
        RecordingStart.Params.streams: Streams to record; absent for all current and future
            streams.
        RecordingStart.Result.directory: Absolute path.
        RecordingStart.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        RecordingStarted: `recording.started`: directory and files are ready.
        RecordingStarted.by: Participant who asked for it; absent for the signalling server and
            for `autoRecord`.
        RecordingStarted.directory: Absolute path.
        RecordingStop: Ends a room's recording; `recording.stopped` lists the files.
        RecordingStopped: `recording.stopped`: its files are closed.
        RecordingStopped.bytes: Bytes of all files.
        RecordingStopped.count: Number of all files.
        RecordingStopped.directory: Absolute path.
        RecordingStopped.files: The first files; `recording.files` gives the rest.
        RecordingStopped.next: `after` of the next page of files; absent if there is none.
        RecordingStopped.reason: Cause of an end that nobody asked for: `room-closed`,
            `session-ended`, `disk-full`, `too-slow` and the like.
        RegistryAvailability: Whether the nodes' registry can be reached.
        RegistryAvailability.away: No new rooms are taken, and no node is given up; everything
            else goes on.
        RequestID: Id that matches a reply to its request.
        RequestedMode: A mode in a call, by its current name or by an older one.
        RequestedMode.isOldName: Whether an old name was used, `CONFERENCE` or `VIEWER`; see
            `strictModeVocabulary`.
        Resolution: A picture's size, in pixels.
        Resync: `resync`: events were missed and cannot be sent again; call `room.get` for the
            current state. It is sent to one connection only, and its `audience` is empty. Its
            `seq` is that of the room's last event, so that the next one is `seq` + 1; it is 0 if
            the room does not exist.
        Resync.reason: Cause of the gap. sfud gives `expired` (the events are no longer held),
            `no-such-room`, or `ahead` (no event with that `seq` has happened yet).
            `EventSequence` gives `restarted` (a new daemon process) or `gap`.
        Role: Rights of the participants who have a role.
        Role.priority: Priority of its holders' videos for viewers who name none; 0 by default.
        RoleAccept: Accepts a request to change role; its target calls this.
        RoleAnswer: Params of the answers to a role request.
        RoleChange: Changes a participant's role, at once or by a request that the participant may
            accept.
        RoleChange.Params.force: Whether the change takes place without a request; `false` by
            default.
        RoleChange.Result.durable: `false` if the change is not in the room's journal yet. It is
            lost if the node is lost before the registry is back. Absent otherwise, and without a
            cluster.
        RoleChange.Result.request: Absent if the role changed without a request.
        RoleChangeAll: Changes the role of everybody, or of the participants with certain roles,
            at once.
        RoleChangeAll.Params.from: Roles to change; absent for all but `protectedRoles`.
        RoleChangeDeclined: `role.changeDeclined`.
        RoleChangeRequested: `role.changeRequested`: a participant is asked to take a role.
        RoleChangeRequested.expires: Unix time, in seconds.
        RoleDecline: Declines a request to change role; its target calls this.
        RoleRequestExpired: `role.requestExpired`: a role request has ended without an answer.
        RoleRequestExpired.by: The participant whose call ended the request; for `timeout`, the
            one who asked.
        RoleRequestExpired.reason: `timeout`, `replaced`, `role-changed`, `role-removed`,
            `not-permitted`, `target-left` or `requester-left`.
        RoleRequestExpired.requester: The participant who asked; absent if it was the signalling
            server itself.
        RoleRequestInfo: A request to a participant to take a role, open until it is answered or
            expires.
        RoleRequestInfo.by: The participant who asks; absent if it is the signalling server
            itself.
        RoleRequestInfo.expires: Unix time, in seconds.
        RoleRequestInfo.participant: The participant who is asked.
        RoleRequests: Returns a room's open role requests, oldest first.
        RoleRequests.Params.participant: The participant who is asked; absent for the requests to
            all.
        RoomByParticipant: Params of methods on a room, with the participant who asks for it if
            any.
        RoomClose: Ends a room; all participants are disconnected.
        RoomClose.Params.detail: Free text that `room.closed` passes on; at most 256 bytes.
        RoomClosed: `room.closed`: the last event of a room.
        RoomClosed.detail: Free text of the caller.
        RoomClosed.reason: `closed`, `empty`, `shutdown` or, in a cluster, `node-lost`.
        RoomCounts: Numbers of a room's objects.
        RoomCounts.awaited: Participants who wait to be let in.
        RoomCreate: Creates a room.
        RoomCreated: `room.created`.
        RoomGet: Returns a room.
        RoomHardMute: Mutes the audio of all but the caller, including participants who join
            later.
        RoomHardMute.Params.by: Participant who asks for it, and who stays audible.
        RoomHardMute.Params.sparing: Further participants who stay audible; absent for none.
        RoomHardMuted: `room.hardMuted`.
        RoomHardUnmute: Ends the room's mute; hard mutes of single participants remain.
        RoomHardUnmuted: `room.hardUnmuted`.
        RoomInfo: State of a room as results describe it.
        RoomInfo.awaited: The first page of those who wait to be let in.
        RoomInfo.created: Unix time, in seconds.
        RoomInfo.durable: `false` in the results of `room.create` and `room.update` if the change
            is not in the room's journal yet: it is lost if the node is lost before the registry
            is back.
        RoomInfo.next: Cursors of the lists that go on.
        RoomInfo.node: Home of the room, the node that has it; absent without a cluster.
        RoomInfo.participants: The first page of `participant.list`; absent in a join without
            snapshot.
        RoomInfo.recording: The running recording.
        RoomInfo.seq: `seq` of the room's last event; 0 before the first.
        RoomInfo.streaming: The oldest of `streamings`.
        RoomInfo.streamings: The running live streams, in the order of their start.
        RoomInfo.streams: The first page of `stream.list`.
        RoomList: Returns a summary of each room, in the order of their names.
        RoomList.Params.state: State of the rooms to list; absent for all.
        RoomLock: Locks a room: nobody new may join, only former moderators may return.
        RoomLocked: `room.locked`.
        RoomMode: Kind of room: who may send, and whether it is a live event.
        RoomMode.isLiveEvent: Whether the room starts as `created` and passes through states;
            others start as `ongoing`.
        RoomOnly: Params of the methods that take a room and nothing else.
        RoomPages: Cursors of a room's lists after their first page: `after` of the list's own
            method.
        RoomPages.awaited: For `participant.list` with state `awaited`.
        RoomSetState: Moves a live event to its next state, or ends it.
        RoomSettings: Settings of a room, with every default filled in.
        RoomSettings.maxParticipants: Absent if only the server's own limit applies.
        RoomSettings.protectedRoles: Roles that `role.changeAll` does not change unless it names
            them.
        RoomSettings.roleRequestSeconds: Lifetime of a role request, in seconds.
        RoomSettings.strictModeVocabulary: Whether a call with an old mode name is refused after
            one with a current name, or reversed.
        RoomSettings.strictPins: Whether at most `maxActiveTalkers` − 1 participants can be
            pinned; else further pins extend the list of active talkers.
        RoomSettingsChange: Changes to settings: an absent member keeps its value or default, and
            `null` brings the default back.
        RoomSettingsChange.disconnectedSeconds: `null` stands for never.
        RoomSettingsChange.emptySeconds: `null` stands for never.
        RoomStateChanged: `room.stateChanged`.
        RoomStateChanged.previous: The state before, and again the one now.
        RoomStateChanged.state: The state now.
        RoomStats: `stats`: statistics of a room, for `stats.subscribe`. It is sent to one
            connection only; its `audience` is empty and its `seq` 0, as it is not one of the
            room's events. The statistics of a large room come in several parts.
        RoomStats.next: Number of the next part; absent in the last one.
        RoomStats.part: Number of this part, from 1.
        RoomSummary: A room as `room.list` shows it.
        RoomSummary.created: Unix time, in seconds.
        RoomUnlock: Unlocks a room.
        RoomUnlocked: `room.unlocked`.
        RoomUpdate: Changes a room's custom data, or its settings except the mode.
        RoomUpdate.Params.custom: Replaces the custom data; null empties it.
        RoomUpdate.Params.settings: Merged into the current settings.
        RoomUpdated: `room.updated`: the custom data and settings after the change.
        SentLayer: Measured properties of the layer that is being sent.
        SentLayer.bitrate: Bits a second.
        SentLayer.frameRate: Frames a second.
        SentLayer.width: Pixels; 0 while unknown.
        ServerDescribe: Returns this contract as an OpenRPC document: methods, events and the
            schemas of their types.
        ServerDescribe.Result: An OpenRPC 1.3 document.
        ServerDrain: Refuses new rooms from now on; existing rooms continue. In a cluster the
            node's participants are asked to move to other nodes, and its rooms go on there.
            `server.drained` follows when the last room has ended or left, at once if there is
            none.
        ServerDrain.Params.deadline: Seconds until remaining rooms end with reason `shutdown`: 0
            to 604,800, a week. absent for no deadline.
        ServerDrained: `server.drained`: the last room has ended after `server.drain`. It belongs
            to no room: its line has no `room` and no `seq`, and it is sent to every connection
            that receives events.
        ServerInfo: Returns the server's version, addresses and limits.
        ServerInfo.Result.boot: Different after each start, unless the rooms were kept over it.
        ServerInfo.Result.contract: Version of the contract.
        ServerInfo.Result.draining: Whether new rooms are refused.
        ServerInfo.Result.fingerprint: Fingerprint of the DTLS certificate as SDP writes it:
            `sha-256 AB:CD:…`.
        ServerInfo.Result.started: Unix time of the start, in seconds.
        ServerInfo.Result.tcp: `ADDR:PORT` of each listening TCP socket; absent if there is none.
        ServerInfo.Result.udp: `ADDR:PORT` of each UDP socket.
        ServerLimits: Limits of the server, by the names that `4029 limit-reached` and the
            configuration use. docs/limits.md explains them.
        ServerOverload: `server.overload`: a worker sheds more or less load than before. It
            belongs to no room: its line has no `room` and no `seq`, and it is sent to every
            connection that receives events.
        ServerOverload.previous: The level before and the level now.
        ServerStats: Returns traffic counters and load.
        ServerStats.Result.counters: Sum over all workers.
        ServerStats.Result.forwarding: Time in the daemon since the start; absent before the first
            forwarded packet.
        ServerStats.Result.joinsRefused: Joins and first transports that were refused because the
            workers were overloaded.
        ServerUndrain: Takes `server.drain` back: new rooms are accepted again.
        ServerUpgrade: Replaces the running program by another version, in the same process and on
            the same sockets. The reply comes first. Then the connection ends, and `server.info`
            of a new one has another `boot`.
        ServerUpgrade.Params.binary: Absolute path of the program, at most 1,024 bytes; absent for
            the one that was started.
        SessionFreezes: Times in which no new frame of a video reached the participant, as
            `subscription.explain` counts them.
        SessionFreezes.hops: The same by hop, without hops that have none.
        SessionInfo: Account of a participant's stay, in `participant.left`.
        SessionInfo.duration: Seconds since it joined.
        SessionInfo.estimate: Estimate of what the path to it carries, in bits a second, whose
            worst is the lowest; absent if no limit was known at any report on media that it
            received.
        SessionInfo.freezes: Freezes of the video that it received.
        SessionInfo.received: Media that it was subscribed to.
        SessionInfo.roundTripTime: Milliseconds; absent if it sent no report on media that it
            received.
        SessionInfo.sent: Media that it published.
        SessionMedia: Media of one direction in a session. Streams at the same time add up: ten
            cameras in one minute are ten minutes of video.
        SessionMedia.fractionLost: Share of packets lost, 0 to 1; absent without a report.
        SessionMedia.jitter: Milliseconds; absent without a report.
        SessionMedia.videoMinutes: Video of cameras.
        ShortText: A human-readable string of at most 256 bytes of UTF-8. Two are the same if
            their bytes are: Unicode knows several spellings of one text.
        StatsGet: Returns network statistics of a room, a participant or a subscription.
        StatsGet.Params.limit: Most participants of a page.
        StatsGet.Result.next: Cursor of the next participants' statistics; absent at the end.
        StatsSubscribe: Sends statistics of rooms to this connection at intervals, as `stats`
            events. A connection has one such subscription; a second call replaces the first. It
            ends with the connection and is independent of `events.subscribe`.
        StatsSubscribe.Params.rooms: Rooms to report on, present or future, at most 10,000; absent
            for all.
        StatsSubscribe.Params.seconds: Seconds from one report of a room to the next: 1 to 60.
        StatsUnsubscribe: Ends `stats.subscribe`; without effect if there is none.
        StreamAttributes: Changes of a stream's attributes; `null` unsets one.
        StreamChanged: `stream.changed`: its media was switched off or on, or its codec or layers
            changed.
        StreamCreated: `stream.created`.
        StreamDestroyed: `stream.destroyed`; its subscriptions end with it.
        StreamDestroyed.reason: A word such as `unpublished`, `left` or `disconnected`.
        StreamInfo: A stream as results and events describe it.
        StreamInfo.audioFallback: Whether the publisher lets its video be switched off to keep the
            audio.
        StreamInfo.created: Unix time, in seconds.
        StreamInfo.custom: Object that the signalling server attached to the stream.
        StreamInfo.source: `camera` (also with audio beside it), `microphone` (audio alone) or
            `screen`.
        StreamKind: Kind of media: audio or video.
        StreamLayersWanted: `stream.layersWanted`: encodings that have subscribers; the publisher
            may pause the others.
        StreamLayersWanted.layers: All encodings of the stream's video, as the offer listed them.
        StreamList: Returns a room's streams.
        StreamSource: Source of a stream or of an m-line's media.
        StreamStats: Statistics of media received on one m-line of a stream.
        StreamStats.time: Unix time of the figures, in seconds.
        StreamUnpublish: Ends a stream.
        StreamUpdate: Reports that the publisher switched its microphone or camera off or on.
        StreamingInfo: A live stream; its URL is not reported.
        StreamingInfo.State: Progress of a live stream.
        StreamingInfo.State.interrupted: The server is gone, and sfud reconnects.
        StreamingInfo.State.starting: The server has not accepted the first packet yet.
        StreamingInfo.by: Participant who asked for it; absent for the signalling server.
        StreamingInfo.layout: `stage` or `grid`.
        StreamingInfo.started: Unix time of the call, in seconds.
        StreamingInfo.width: In pixels.
        StreamingInterrupted: `streaming.interrupted`: the connection to the server was lost;
            reconnecting.
        StreamingInterrupted.cause: A word such as `connection-lost`.
        StreamingList: Returns live streams, of one room or of all, in the order in which they
            started.
        StreamingPage: Page that a live stream is to show instead of participants.
        StreamingResumed: `streaming.resumed`: the server accepts packets again.
        StreamingStart: Starts a live stream of a room to an RTMP server, as H.264 and AAC. The
            reply is sent once the server has accepted the first packet or failed to.
        StreamingStart.Params.bitrate: Video bitrate, in bits a second.
        StreamingStart.Params.layout: `stage`, the default, or `grid`; `page` is refused as not
            implemented.
        StreamingStart.Params.page: Page to show instead of participants; refused as not
            implemented.
        StreamingStart.Params.url: `rtmp://` or `rtmps://` URL with its stream key; it is neither
            reported nor logged.
        StreamingStart.Params.width: Pixels; 1280 × 720 by default, and 16:9 if only one is given.
        StreamingStart.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        StreamingStarted: `streaming.started`: the server has accepted the first packet.
        StreamingStarted.by: Participant who asked for it; absent for the signalling server.
        StreamingStarted.layout: `stage` or `grid`.
        StreamingStarted.width: In pixels.
        StreamingStop: Ends one live stream of a room, or all of them if no id is given.
        StreamingStopped: `streaming.stopped`: nothing more is sent to the server.
        StreamingStopped.reason: `requested`, or a word such as `room-closed` or `unreachable`.
        SubscribeRights: Media that a role may receive, with upper bounds.
        SubscribeRights.maxBitrate: Bits a second of each video, not of all together.
        SubscribeRights.maxWidth: Pixels.
        SubscribeRights.roles: Roles whose media it may receive; absent for all.
        SubscriptionAdd: Subscribes a participant to a stream, on slots of its transports.
        SubscriptionAdd.IfExists: Effect of subscribing to a stream that is watched already.
        SubscriptionAdd.IfExists.refuse: The call is refused with 4009, which names the
            subscription.
        SubscriptionAdd.Params.ifExists: `refuse` by default.
        SubscriptionAdd.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        SubscriptionConnected: `subscription.connected`: its first packet was sent; for video, a
            keyframe.
        SubscriptionConnected.audioMid: The subscriber's m-lines that carry the stream.
        SubscriptionDisconnected: `subscription.disconnected`: the stream's media stopped,
            temporarily or permanently.
        SubscriptionDisconnected.final: Whether the subscription has ended.
        SubscriptionDisconnected.reason: `publisher-reconnecting`, `transport-reconnecting`,
            `role`, `slots-ended` or `talkers-changed`.
        SubscriptionExplain: Explains the video layer that a subscription receives, and what
            limits it.
        SubscriptionExplain.Result.advice: Change that would allow a higher layer; absent if
            nothing limits it.
        SubscriptionExplain.Result.decisions: Last layer switches, 32 at most, oldest first.
        SubscriptionExplain.Result.estimate: Bitrate the subscriber's path can carry, in bits a
            second; absent while unknown.
        SubscriptionExplain.Result.freezes: Freezes of the video; absent without video.
        SubscriptionExplain.Result.limit: The one constraint that prevents a higher layer.
        SubscriptionExplain.Result.needed: Lowest estimate at which a higher layer would be sent,
            in bits a second.
        SubscriptionExplain.Result.offered: Layers of the publisher's video, whether active or
            not.
        SubscriptionExplain.Result.preference: Limits and priority that the subscriber asked for.
        SubscriptionExplain.Result.retryAt: Time of the next try of a layer that recently failed,
            in Unix seconds.
        SubscriptionExplain.Result.sent: Layer that is sent to the subscriber; `null` for no
            video.
        SubscriptionExplain.Result.share: Part of the estimate allocated to this subscription's
            video, in bits a second.
        SubscriptionFreezes: Freezes of a subscription's video since it began.
        SubscriptionFreezes.count: Freezes that have ended, and their length.
        SubscriptionFreezes.hops: The same by hop, without hops that have none.
        SubscriptionFreezes.recent: Last freezes, 16 at most, oldest first; the last one may still
            be going on.
        SubscriptionInfo: A subscription as results describe it.
        SubscriptionInfo.audio: The subscriber's own switches.
        SubscriptionInfo.followsTalkers: Whether slots that follow the active speakers made it.
        SubscriptionLayerChanged: `subscription.layerChanged`: another layer of the stream is
            forwarded.
        SubscriptionLayerChanged.previous: The layer before and the layer now; absent for no
            video.
        SubscriptionList: Returns a participant's subscriptions, oldest first.
        SubscriptionReconnected: `subscription.reconnected`: the stream's media arrives again.
        SubscriptionReference: Ids that every event about a subscription carries.
        SubscriptionRemove: Ends a subscription and frees its slots.
        SubscriptionSet: Makes the whole of a participant's explicit subscriptions in one call. A
            stream that is watched already keeps its subscription and slots; its preferences
            become those of the call. What the call does not name ends.
        SubscriptionSet.Params.subscriptions: No stream may occur twice.
        SubscriptionSet.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        SubscriptionSet.Result.results: One result for each stream, in the order of the call.
        SubscriptionSet.Wanted: One subscription of the set.
        SubscriptionSet.Wanted.audioMid: Slots for a subscription that begins; one that exists
            keeps its own.
        SubscriptionSet.Watched: The subscription to one stream, or the error that refused it.
        SubscriptionStats: Statistics of media sent on one slot.
        SubscriptionStats.fractionLost: Fraction lost in the subscriber's last receiver report: 0
            to 1.
        SubscriptionStats.freezes: Freezes of the video that have ended, and their length.
        SubscriptionStats.jitter: Jitter in the subscriber's last receiver report, in
            milliseconds.
        SubscriptionStats.nacks: Packets that the subscriber requested again.
        SubscriptionStats.packetsLost: Packets lost according to the subscriber's receiver
            reports.
        SubscriptionStats.plis: Keyframes that the subscriber requested.
        SubscriptionStats.rid: RID of the forwarded layer.
        SubscriptionStats.time: Unix time of the figures, in seconds.
        SubscriptionUpdate: Changes the stream or the preferences of a subscription.
        SubscriptionUpdate.Params.audio: The subscriber's own switches for audio and video.
        SubscriptionUpdate.Params.stream: Another stream for the same slots.
        SubscriptionVideoDisabled: `subscription.videoDisabled`.
        SubscriptionVideoEnabled: `subscription.videoEnabled`; its reason is that of the
            `videoDisabled` event that it ends.
        SwitchedLayer: A layer before or after a switch.
        SwitchedLayer.frameRate: Frames a second, rounded to a whole number.
        Talker: One entry in the list of active speakers.
        TalkersChanged: `talkers.changed`: the list of active speakers as its addressees see it.
        TalkersChanged.by: Participant whose calls alone have changed the list since it was last
            announced.
        TalkersSubscribe: Makes slots follow the room's active speakers; without any slots, ends
            it.
        TalkersSubscribe.Params.audioMids: At most 100, none of them twice.
        TapDestination: Destination of one kind of a stream's media as plain RTP.
        TapDestination.address: `ADDR:PORT` for RTP; RTCP goes to the next port.
        TapInfo: A stream that is forwarded as plain RTP.
        TapInfo.bytes: Bytes of these packets.
        TapInfo.dropped: Packets that the kernel did not accept.
        TapInfo.packets: RTP packets that the kernel accepted, as of at most a second ago.
        TapInfo.refused: Packets refused by the destination because no socket listens there.
        TapInfo.started: Unix time, in seconds.
        TapList: Lists the RTP forwards.
        TapList.Params.room: Room to list; absent for all rooms.
        TapList.Result.taps: Forwards in the order in which they started.
        TapStart: Forwards a stream as plain RTP to an address that the configuration allows.
        TapStart.Params.audio: Destinations; at least one of the two.
        TapStart.Result.durable: `false` if the change is not in the room's journal yet. It is
            lost if the node is lost before the registry is back. Absent otherwise, and without a
            cluster.
        TapStart.Result.sdp: Session description for the receiver (RFC 8866).
        TapStarted: `tap.started`: a stream is forwarded as plain RTP; the destination is not
            reported.
        TapStarted.by: Participant who asked for it; absent for the signalling server.
        TapStop: Ends an RTP forward.
        TapStopped: `tap.stopped`: nothing more of the stream is forwarded.
        TapStopped.reason: `requested`, or a word such as `stream-ended`.
        TargetResult: The outcome for one participant of a call that names several.
        TargetResult.error: Error that refused the call for this one; absent if it took effect.
        TargetResults: The result of a call about one participant or several.
        TargetResults.durable: `false` if the change is not in the room's journal yet. It is lost
            if the node is lost before the registry is back. Absent otherwise, and without a
            cluster.
        TargetResults.results: One result for each participant, in the order of the call; absent
            if it named one only.
        Targets: Participants that a call is about: one, several, or all who wait to be let in.
            With one, the call is refused as a whole; with several, it is answered one by one.
        Targets.Several: The participants of one call: a list, or `"all"` for all who wait to be
            let in.
        TargetsByParticipant: Params of a call about participants, with the participant who asks
            for it if any.
        TargetsByParticipant.targets: `participant`, or `participants`: a list or `"all"`.
        TopicInfo: A topic that has subscribers or kept messages.
        TopicInfo.kept: Number of its kept messages.
        TopicInfo.subscribers: Number of its subscribers.
        TopicOfParticipant: Params of a participant's subscription to a topic.
        TransportClose: Ends a transport with its streams and subscriptions.
        TransportInfo: A transport as `transport.list` describes it.
        TransportInfo.mids: M-lines that carry media in a direction: those that the participant
            sends on, then those that it only receives on.
        TransportList: Returns a participant's transports, in the order of their names.
        TransportOffer: Creates a transport, renegotiates it, or restarts its ICE.
        TransportOffer.Params.audioFallback: Whether the streams' video may be switched off to
            keep their audio; by default that of cameras may, and that of screens may not.
        TransportOffer.Params.sources: Sources of the m-lines; camera or microphone by default.
        TransportOffer.Params.streams: Attributes of the streams that the m-lines belong to.
        TransportOffer.Result.durable: `false` if the change is not in the room's journal yet. It
            is lost if the node is lost before the registry is back. Absent otherwise, and without
            a cluster.
        TransportStats: Statistics of a participant's transport.
        TransportStats.estimate: Estimate of what the path to the peer carries, in bits a second;
            absent if no limit is known.
        TransportStats.remote: `ADDR:PORT` of the peer, once a connectivity check has validated
            it.
        TransportStats.roundTripTime: Milliseconds, from RTCP reports.
        TransportStats.time: Unix time of the figures, in seconds; absent if the worker has none
            yet.
        VideoInfo: A stream's video.
        VideoInfo.codec: Codec of the last received packet; before the first, the negotiated one.
        VideoInfo.enabled: Whether the publisher has it switched on and no moderator has muted it.
        VideoReason: Reason why a subscription's video was disabled or enabled.
        VideoRight: Right to send a camera or a screen: `true`, `false`, or an object with its
            bounds.
        VideoRight.Bounds: The object that stands for a right with bounds.
        VideoRight.Bounds.maxBitrate: Bits a second.
        VideoRight.Bounds.maxFrameRate: Frames a second.
        VideoRight.Bounds.maxWidth: Pixels; larger layers are not forwarded.
        VideoRight.maxBitrate: Bits a second.
        VideoRight.maxFrameRate: Frames a second.
        VideoRight.maxWidth: Pixels; larger layers are not forwarded.
        WantedLayer: One encoding, and whether any subscriber needs it.
        WantedLayer.rid: Absent without simulcast.
        WorkerInfo: State and counters of one worker.
        WorkerInfo.load: Recent use of one core: 0 to 1.
        WorkerInfo.pressure: Load of the worker, and its load-shedding level.
        """#
}
