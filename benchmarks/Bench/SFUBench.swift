import Foundation
import CKernel
/// Loads an SFU as real clients do, and measures what it costs.
@main
struct SFUBench {
    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count > 2, arguments[1] == "floor" {
            try? Floor.run(segments: arguments[2] == "runs")
        }
        _ = kernel_signals_open()
        Task.detached { try await go(); exit(0) }
        while true { pause() }
    }
    static func go() async throws {
        let library = try Library([Library.camera], progress: Progress())
        let n = Int(CommandLine.arguments[1])!
        var settings = EngineSettings()
        settings.sockets = Int(CommandLine.arguments[2])!
        for adapter in [SfudAdapter(), FloorAdapter(segments: false), FloorAdapter(segments: true)] as [any Adapter] {
            var trial = Trial(rooms: [.broadcast(.camera, viewers: n)])
            trial.settings = settings
            do {
            let r = try await trial.run(adapter, library, Progress())
            print(r.name, r.packetsPerSecond, "us", r.cpuMicroseconds, "share", r.cpuShare, "client", r.clientShare, "bytes", r.meanBytes, "loss", r.loss(\.audio), r.loss(\.video), "lat", r.after.latency.milliseconds(0.5), r.after.latency.milliseconds(0.99), "p99.9", r.after.latency.milliseconds(0.999), r.faults, "burst", r.final.slots.burst, "frames", r.final.frames?.frames.count ?? -1, r.final.frames?.decode() ?? -1, r.final.frames?.broken ?? -1, r.final.slots.decrypted, r.final.slots.received, r.final.slots.owed, r.final.queueDrops)
            } catch { print("failed", error) }
        }
    }
}
