import ControlPlane
import WorkerInterface

// Metrics that operators look at when calls are bad: paths, joins and connections.
extension Metrics {
    /// Adds what the paths to publishers and viewers are like.
    func addQuality(to page: inout MetricsPage) {
        let paths = workers.reduce(into: PathSamples()) { $0 += $1.paths }
        func both(_ samples: (PathSamples.Direction) -> Histogram) -> [(String, Histogram)] {
            [
                ("peer=\"publisher\"", samples(paths.publishers)),
                ("peer=\"viewer\"", samples(paths.viewers)),
            ]
        }
        page.addHistogram(
            "sfud_packet_loss_ratio",
            "Share of packets lost in a report's interval, before repair.",
            both(\.loss)
        )
        page.addHistogram("sfud_jitter_seconds", "Interarrival jitter.", both(\.jitter))
        page.addHistogram("sfud_round_trip_seconds", "Round-trip times.", both(\.roundTrip))
    }

    /// Adds who joined and left, and whether they were connected.
    func addJoins(to page: inout MetricsPage) {
        page.add(
            "sfud_participants_joined_total",
            .counter,
            "Participants who entered a room.",
            Double(control.joined)
        )
        page.add("sfud_participants_left_total", "Participants who left.", control.left)
        page.add(
            "sfud_join_refusals_total",
            "Calls of participant.join that were refused.",
            control.joinRefusals,
            label: "cause"
        )
        page.add(
            "sfud_offer_refusals_total",
            "Calls of transport.offer that were refused.",
            control.offerRefusals,
            label: "cause"
        )
        let all = workers.reduce(into: ConnectionOutcomes()) { $0 += $1.connections }
        page.addHistogram(
            "sfud_connect_seconds",
            "From an offer to when media could flow, for those who were connected.",
            [("", all.seconds)]
        )
        page.add("sfud_connect_failures_total", .counter, "Transports never connected.") {
            ConnectionOutcomes.Failure.allCases.map {
                ("cause=\"\($0.rawValue)\"", Double(all.failures[$0] ?? 0))
            }
        }
        page.add("sfud_transports_ended_total", .counter, "Connected ones that peers ended.") {
            [
                ("cause=\"timeout\"", Double(all.timedOut)),
                ("cause=\"closed\"", Double(all.closedByPeer)),
            ]
        }
    }
}
