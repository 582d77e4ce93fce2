import Foundation

@testable import SFU

/// Network scenarios with acceptance limits.
///
/// RFC 8867 §5.1 to §5.8 with its capacities, delays and times. Unless told otherwise, encoders may
/// exceed the RFC's 1.5 Mbit/s, so that the estimator has to respect the capacity.
/// `SFUD_SCENARIOS=full` runs the RFC's whole length with five seeds.
enum Scenarios {
    static let isFull = ProcessInfo.processInfo.environment["SFUD_SCENARIOS"] == "full"
    static let seeds: [UInt64] = isFull ? [1, 2, 3, 4, 5] : [1]
    /// Highest rates of encoders: more than every path carries, and the RFC's own (§4.3).
    static let encoders = [8e6, 1.5e6]

    /// Returns a scenario's name with its encoders, unless these may exceed the path.
    private static func named(_ name: String, _ encoder: Double) -> String {
        encoder == encoders[0] ? name : "\(name)-\(Int(encoder / 1e3))"
    }

    /// Returns `full` seconds in a full run, else `short`.
    static func length(_ full: Double, short: Double) -> Double { isFull ? full : short }

    private static func network(
        _ name: String,
        _ path: PathProperties,
        seed: UInt64,
        until end: Double,
        _ flows: (Bottleneck) -> [any SimulatedFlow]
    ) -> SimulatedNetwork {
        let bottleneck = Bottleneck(path, seed: seed)
        let network = SimulatedNetwork(name, bottleneck, flows(bottleneck))
        network.run(until: end)
        Plot.write(network, seed: seed)
        return network
    }

    private static func single(
        _ name: String,
        _ path: PathProperties,
        seed: UInt64,
        until end: Double,
        _ settings: MediaFlow.Settings = .init()
    ) -> SimulatedNetwork {
        network(name, path, seed: seed, until: end) { link in
            [MediaFlow(settings, forward: link, seed: seed * 100)]
        }
    }

    /// Makes libwebrtc's own scenario: 500, 800, then 100 kbit/s.
    static func steps(seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 500e3), (25, 800e3), (45, 100e3)])
        path.delayMilliseconds = 50
        let link = Bottleneck(path, seed: seed)
        // Round trips of 100 ms, and from second 45 on of 200 ms.
        let flow = MediaFlow(.init(), forward: link, seed: seed * 100)
        let network = SimulatedNetwork("steps", link, [flow])
        network.run(until: 45)
        link.properties.delayMilliseconds = 150
        network.run(until: 95)
        Plot.write(network, seed: seed)
        return network
    }

    /// Makes the same scenario with these one-way delays, and 100 ms back.
    static func slowSteps(seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 500e3), (25, 800e3), (45, 100e3)])
        path.delayMilliseconds = 100
        let link = Bottleneck(path, seed: seed)
        var settings = MediaFlow.Settings()
        settings.backDelayMilliseconds = 100
        let flow = MediaFlow(settings, forward: link, seed: seed * 100)
        let network = SimulatedNetwork("steps-slow", link, [flow])
        network.run(until: 45)
        link.properties.delayMilliseconds = 200
        network.run(until: 95)
        Plot.write(network, seed: seed)
        return network
    }

    static func randomLoss(seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 2e6)])
        path.loss = 0.1
        return single("random-loss", path, seed: seed, until: 60)
    }

    static func steady(capacity: Double, jitter: Double, seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, capacity)])
        path.jitterMilliseconds = jitter
        let name = "steady-\(Int(capacity / 1e3))-jitter-\(Int(jitter))"
        // On a narrow path one full queue is much of a short run.
        let short = capacity < 500e3 ? 120.0 : 45
        return single(name, path, seed: seed, until: length(120, short: short))
    }

    /// RFC 8867 §5.1.
    static func variable(seed: UInt64) -> SimulatedNetwork {
        let path = PathProperties(capacity: [(0, 1e6), (40, 2.5e6), (60, 0.6e6), (80, 1e6)])
        return single("5.1", path, seed: seed, until: 100)
    }

    /// RFC 8867 §5.2.
    static func variableShared(seed: UInt64, encoder: Double) -> SimulatedNetwork {
        let path = PathProperties(
            capacity: [(0, 4e6), (25, 2e6), (50, 3.5e6), (75, 1e6), (100, 2e6)]
        )
        return network(named("5.2", encoder), path, seed: seed, until: 125) { link in
            let settings = MediaFlow.Settings(encoderMaximum: encoder)
            return (0..<2).map { MediaFlow(settings, forward: link, seed: seed * 100 + $0) }
        }
    }

    /// RFC 8867 §5.3: the feedback of each flow shares the link of the other one's media.
    static func congestedFeedback(seed: UInt64) -> SimulatedNetwork {
        let path = PathProperties(capacity: [(0, 2e6), (20, 1e6), (40, 0.5e6), (60, 2e6)])
        let back = Bottleneck(
            PathProperties(capacity: [(0, 2e6), (35, 0.8e6), (70, 2e6)]),
            seed: seed + 50
        )
        return network("5.3", path, seed: seed, until: 100) { link in
            [
                MediaFlow(.init(), forward: link, backward: back, seed: seed * 100),
                MediaFlow(.init(), forward: back, backward: link, seed: seed * 100 + 1),
            ]
        }
    }

    /// RFC 8867 §5.4.
    static func competing(seed: UInt64, encoder: Double) -> SimulatedNetwork {
        let path = PathProperties(capacity: [(0, 3.5e6)])
        return network(named("5.4", encoder), path, seed: seed, until: 120) { link in
            (0..<3).map { index in
                var settings = MediaFlow.Settings(encoderMaximum: encoder)
                settings.startSecond = Double(index) * 20
                return MediaFlow(settings, forward: link, seed: seed * 100 + UInt64(index))
            }
        }
    }

    /// RFC 8867 §5.5.
    static func roundTrips(seed: UInt64, encoder: Double) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 4e6)])
        path.delayMilliseconds = 10
        let end = length(300, short: 120)
        return network(named("5.5", encoder), path, seed: seed, until: end) { link in
            [10.0, 25, 50, 100, 150].enumerated().map { index, delay in
                var settings = MediaFlow.Settings(encoderMaximum: encoder)
                settings.startSecond = Double(index) * 10
                settings.extraDelayMilliseconds = delay - 10
                settings.backDelayMilliseconds = delay
                return MediaFlow(settings, forward: link, seed: seed * 100 + UInt64(index))
            }
        }
    }

    /// RFC 8867 §5.6.
    static func longTCP(queueMilliseconds: Double, seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 2e6)])
        path.queueMilliseconds = queueMilliseconds
        let name = "5.6-queue-\(Int(queueMilliseconds))"
        return network(name, path, seed: seed, until: 120) { link in
            var settings = MediaFlow.Settings()
            settings.startSecond = 5
            return [
                MediaFlow(settings, forward: link, seed: seed * 100),
                TCPFlow(.init(), forward: link, seed: seed * 100 + 1),
            ]
        }
    }

    /// RFC 8867 §5.7: ten downloads of 100 to 1,000 kB, 10 s apart on average.
    static func shortTCP(seed: UInt64) -> SimulatedNetwork {
        let path = PathProperties(capacity: [(0, 2e6)])
        let end = length(300, short: 100)
        return network("5.7", path, seed: seed, until: end) { link in
            var settings = MediaFlow.Settings()
            settings.startSecond = 5
            var downloads = TCPFlow.Settings()
            downloads.files = 100e3...1e6
            var flows: [any SimulatedFlow] = (0..<2).map {
                MediaFlow(settings, forward: link, seed: seed * 100 + $0)
            }
            for index in 0..<10 {
                let seed = seed * 100 + 10 + UInt64(index)
                flows.append(TCPFlow(downloads, forward: link, seed: seed))
            }
            return flows
        }
    }

    /// RFC 8867 §5.8: the first of three flows pauses from second 40 to 60.
    static func pause(seed: UInt64, encoder: Double) -> SimulatedNetwork {
        let path = PathProperties(capacity: [(0, 3.5e6)])
        return network(named("5.8", encoder), path, seed: seed, until: 120) { link in
            (0..<3).map { index in
                var settings = MediaFlow.Settings(encoderMaximum: encoder)
                if index == 0 { settings.pauses = [40...60] }
                return MediaFlow(settings, forward: link, seed: seed * 100 + UInt64(index))
            }
        }
    }

    /// A viewer of three unchanged layers: 3 Mbit/s, then 600 and 200 kbit/s.
    static func layers(seed: UInt64) -> SimulatedNetwork {
        var path = PathProperties(capacity: [(0, 3e6), (20, 0.6e6), (50, 0.2e6), (80, 3e6)])
        path.delayMilliseconds = 30
        var settings = MediaFlow.Settings()
        settings.layers = [120e3, 400e3, 1.8e6]
        return single("layers", path, seed: seed, until: 110, settings)
    }
}
