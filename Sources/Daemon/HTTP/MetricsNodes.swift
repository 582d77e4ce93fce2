import Links
import Nodes

/// Nodes, links and forwarded calls as they are now.
struct MetricsNodes {
    private var alive = 0
    private var isRegistryReached = false
    private var isJournalReached = false
    private var links = 0
    private var strangers: UInt64 = 0
    private var waiting = 0
    private var counters = ClusterCounters()
    private var media = LinkCounters()

    init() {}

    init(_ cluster: ClusterService) {
        alive = cluster.core.aliveCount
        isRegistryReached = cluster.core.isSynced
        isJournalReached = cluster.core.isJournalReached
        links = cluster.core.linkCount
        strangers = cluster.links.strangers
        waiting = cluster.core.waitingCount
        counters = cluster.core.counters
        media = cluster.counters.present
    }

    /// Adds their metrics.
    func add(to page: inout MetricsPage) {
        let gauges: [(String, String, Double)] = [
            ("sfud_nodes", "Nodes that are not lost, this one included.", Double(alive)),
            ("sfud_registry_reached", "Whether the registry answers.", isRegistryReached ? 1 : 0),
            ("sfud_links", "Links to other nodes that are up.", Double(links)),
            ("sfud_node_calls_waiting", "Calls that wait for another node.", Double(waiting)),
            (
                "sfud_journal_reached", "Whether the rooms' journals can be written.",
                isJournalReached ? 1 : 0
            ),
        ]
        for (name, help, value) in gauges { page.add(name, .gauge, help, value) }
        page.add(
            "sfud_link_strangers_total",
            .counter,
            "Connections that proved to be no node's.",
            Double(strangers)
        )
        for (name, help, path) in Self.sums {
            page.add(name, .counter, help, Double(counters[keyPath: path]))
        }
        for (name, help, path) in Self.mediaSums {
            page.add(name, .counter, help, Double(media[keyPath: path]))
        }
        let narrow = Double(media.narrowPaths)
        page.add("sfud_links_narrow", .gauge, "Links that do not carry all.", narrow)
        let withheld = Double(media.encodingsWithheld)
        page.add("sfud_link_encodings_withheld", .gauge, "Encodings they do not carry.", withheld)
        let passed = Double(media.streamsPassedOn)
        page.add("sfud_link_streams_passed_on", .gauge, "Tracks between other nodes.", passed)
    }

    private static let mediaSums: [(String, String, any KeyPath<LinkCounters, UInt64> & Sendable)] =
        [
            ("sfud_link_datagrams_in_total", "Datagrams of other nodes.", \.datagramsIn),
            ("sfud_link_bytes_in_total", "Their bytes.", \.bytesIn),
            ("sfud_link_datagrams_out_total", "Datagrams to other nodes.", \.datagramsOut),
            ("sfud_link_bytes_out_total", "Their bytes.", \.bytesOut),
            ("sfud_link_datagrams_refused_total", "Datagrams refused.", \.datagramsRefused),
            ("sfud_link_packets_in_total", "Media packets of other nodes.", \.packetsIn),
            ("sfud_link_packets_out_total", "Media packets to other nodes.", \.packetsOut),
            ("sfud_link_packets_repeated_total", "Of those, sent again.", \.packetsRepeated),
            ("sfud_link_packets_missed_total", "Packets asked for again.", \.packetsMissed),
            ("sfud_link_packets_unwanted_total", "Packets without a right.", \.packetsUnwanted),
            ("sfud_link_packets_refused_total", "Packets not kept.", \.packetsRefused),
            ("sfud_link_packets_too_long_total", "Packets too long.", \.packetsTooLong),
            ("sfud_link_packets_crowded_total", "Packets without room.", \.packetsCrowded),
            ("sfud_link_padding_bytes_total", "Bytes of probes.", \.paddingOut),
        ]

    private static let sums: [(String, String, any KeyPath<ClusterCounters, UInt64> & Sendable)] =
        [
            ("sfud_nodes_lost_total", "Nodes whose lease has ended.", \.nodesLost),
            ("sfud_node_calls_sent_total", "Calls sent to other nodes.", \.callsForwarded),
            ("sfud_node_calls_repeated_total", "Of those, sent again.", \.callsRepeated),
            ("sfud_node_calls_executed_total", "Calls executed for others.", \.callsExecuted),
            (
                "sfud_node_outcomes_unknown_total", "Calls whose outcome was lost with a node.",
                \.outcomesUnknown
            ),
            ("sfud_node_events_sent_total", "Events sent to other nodes.", \.eventsSent),
            ("sfud_node_events_received_total", "Events of other nodes.", \.eventsReceived),
            ("sfud_rooms_yielded_total", "Rooms that another node has claimed.", \.roomsLost),
            (
                "sfud_node_rooms_taken_over_total", "Rooms of lost nodes that go on here.",
                \.roomsTakenOver
            ),
            ("sfud_node_rooms_let_go_total", "Rooms that were let go to others.", \.roomsLetGo),
            ("sfud_journal_writes_total", "Groups of changes in journals.", \.journalGroups),
            ("sfud_journal_snapshots_total", "Of those, snapshots.", \.journalSnapshots),
            ("sfud_journal_bytes_total", "Bytes of those groups.", \.journalBytes),
            (
                "sfud_node_replies_not_durable_total", "Replies with durable: false.",
                \.repliesNotDurable
            ),
        ]
}
