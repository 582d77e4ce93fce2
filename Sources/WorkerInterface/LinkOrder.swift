/// Order to the link thread, which exchanges media with the link threads of other nodes.
///
/// Publications that go out are mirrors in that thread, and those that come in are homes: gates,
/// relays and fences are the ordinary commands. What comes in may go on to other nodes.
package enum LinkOrder: Hashable, Sendable {
    /// Sends a publication, mirrored in the link thread or taken from another node, to the nodes
    /// that want it; to none ends that.
    case send(PublicationID, as: StreamName, to: [String])
    /// Takes a publication from another node; the configuration's id is its handle here. The name
    /// may be a new one of the same publication, and the node another one that has it.
    case receive(PublicationConfiguration, StreamName, from: String)
    /// Ends a publication that was taken from another node.
    case end(PublicationID)
    /// Sets the encodings that are wanted of a publication of another node, one bit each; of sound
    /// also `heldAudio`.
    case want(PublicationID, UInt8)
    /// Exchanges datagrams with a node, in place of those under its former keys.
    case connect(String, Address, LinkKeys)
    case disconnect(String)
    /// Sets whether a node's leases on rooms of this home go on; when they do not, its media stops
    /// by itself.
    case grant(String, Bool)
    /// Lets the present lease on the rooms of a home that has died last until another node can have
    /// gone on with them.
    case prolong(home: String)
    /// Begins to hold this node's lease on the rooms of another home, under a number; `nil` ends
    /// that.
    case hold(home: String, lease: Int?)

    /// Bit of a want of sound: it is wanted from a talker's first syllable on, which the other node
    /// holds.
    package static let heldAudio: UInt8 = 0x80
}

/// Name of a publication that all nodes of a room know.
package struct StreamName: Hashable, Sendable, Codable {
    /// Node that runs the room, a slash, and that node's life.
    package var home: String
    /// Place of the publication's transport, and its handle there, as the home counts them.
    package var target: RelayTarget

    package init(home: String, target: RelayTarget) {
        self.home = home
        self.target = target
    }

    /// Whether a node, in any of its lives, gave the name.
    package func isGiven(by node: String) -> Bool { home.hasPrefix("\(node)/") }
}

/// Keys of the datagrams between two nodes, from their link's TLS session (RFC 8446 §7.5).
package struct LinkKeys: Hashable, Sendable {
    /// Keys of one direction.
    package struct Direction: Hashable, Sendable {
        /// Identifier of the keys, in each datagram.
        package var association: UInt64
        /// AES-256 key, and the initial vector of 12 bytes.
        package var key: [UInt8]
        package var vector: [UInt8]

        package init(association: UInt64, key: [UInt8], vector: [UInt8]) {
            self.association = association
            self.key = key
            self.vector = vector
        }
    }

    package var outgoing: Direction
    package var incoming: Direction

    package init(outgoing: Direction, incoming: Direction) {
        self.outgoing = outgoing
        self.incoming = incoming
    }
}

/// Notice of the link thread.
package enum LinkNotice: Hashable, Sendable {
    /// Datagrams come through to a node and back, or no longer.
    case media(String, isAlive: Bool)
}
