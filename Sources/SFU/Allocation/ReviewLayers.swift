import RTP
import WorkerInterface

/// Review of the layers on offer, after which each subscriber gets one.
extension LayerAllocator {
    /// Reviews the layers of all video publications of a transport.
    mutating func reviewLayers(
        of transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        var isBusy = false
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            guard receiver.publications[publication].kind == .video else { continue }
            if review(publication, at: now, &transports, &receiver, &forwarder) { isBusy = true }
            receiver.reportLayers(of: publication, at: now)
        }
        transports[transport].layersDue =
            isBusy ? now.advanced(milliseconds: Receiver.layersMilliseconds) : nil
    }

    /// Measures a publication's layers, and selects layers again if they have changed.
    ///
    /// Returns whether another review is needed.
    mutating func review(
        _ publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) -> Bool {
        var isBusy = false
        var isNews = receiver.publications[publication].refreshes.takePending()
        // A closed publication's packets are not inspected, so its layers stay as they were.
        let isOpen = receiver.publications[publication].isOpen
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            if receiver.encodings[encoding].rate.measure(at: now) { isNews = true }
            if isOpen, receiver.encodings[encoding].layers.measure(at: now) { isNews = true }
            let isLive = receiver.isLive(encoding, at: now)
            if isLive != receiver.encodings[encoding].isLive { isNews = true }
            if !isLive,
                receiver.isResumable(position, of: publication, at: now)
                    != receiver.encodings[encoding].isOffered
            {
                isNews = true
            }
            if isLive { isBusy = true }
        }
        if isNews { refreshLayers(of: publication, at: now, &transports, &receiver, &forwarder) }
        let isPending = reviewInterruption(
            of: publication,
            isLive: isBusy,
            at: now,
            &transports,
            &receiver,
            &forwarder
        )
        return reviewDemand(of: publication, at: now, transports, &receiver, forwarder)
            || isPending || isBusy
    }

    /// Selects layers again because a packet has shown other ones.
    ///
    /// That costs as much as the publication has subscribers, and each of its packets may show
    /// something else. So beyond a limit it is left to the next review.
    mutating func noteNews(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        guard receiver.publications[publication].refreshes.mayRefresh(at: now) else {
            // Pictures that a role forbids do not wait for the review.
            receiver.withdrawAboveCap(of: publication)
            forwarder.holdViewersAboveCaps(of: publication, transports, receiver)
            return receiver.scheduleReview(of: publication, at: now, &transports)
        }
        refreshLayers(of: publication, at: now, &transports, &receiver, &forwarder)
    }

    /// Rebuilds the list of layers on offer, and selects one for each subscriber.
    mutating func refreshLayers(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        guard receiver.updateOffers(of: publication, at: now) else { return }
        chooseLayers(of: publication, at: now, &transports, &receiver, &forwarder)
    }

    /// Applies another cap of the publisher's role, from the next packet on.
    mutating func applyCap(
        to publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        receiver.applyRateLimits(to: publication)
        receiver.applyCap(to: publication, at: now)
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            if forwarder.stopAboveCaps(slot, transports, receiver) {
                forwarder.revokeRight(of: slot, transports)
            }
        }
        receiver.forgetPicturesAboveCap(of: publication)
        chooseLayers(of: publication, at: now, &transports, &receiver, &forwarder)
    }

    /// Selects a layer for each subscriber of a publication.
    private mutating func chooseLayers(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        for index in 0..<receiver.publications[publication].subscribers.count {
            chooseLayer(
                of: receiver.publications[publication].subscribers[index],
                at: now,
                &transports,
                &receiver,
                &forwarder
            )
        }
    }
}
