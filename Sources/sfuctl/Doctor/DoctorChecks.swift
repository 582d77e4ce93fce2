import Contract

/// Checks of `sfuctl doctor`: from facts to findings.
struct DoctorChecks {
    let facts: DoctorFacts

    init(_ facts: DoctorFacts) { self.facts = facts }

    /// All findings, in the order in which they are shown.
    var findings: [Finding] {
        [daemon, version, load].compactMap(\.self) + sockets + addresses
            + [clock, descriptors, kernel, disk].compactMap(\.self) + libraries
    }

    private var daemon: Finding {
        guard let daemon = facts.daemon else {
            return .fault(
                "daemon",
                facts.failure ?? "no sfud answers at \(facts.ipc)",
                "start it, or name its socket by --ipc or SFUD_IPC. What follows is about this "
                    + "machine alone"
            )
        }
        var words = ["sfud \(daemon.info.version)"]
        if let id = facts.program?.id { words.append("process \(id)") }
        words.append("up \(Report.duration(daemon.stats.uptimeSeconds))")
        words.append("\(daemon.stats.rooms) rooms")
        words.append("\(daemon.stats.participants) participants")
        guard !daemon.info.draining else {
            return .warning(
                "daemon",
                (words + ["takes no new rooms"]).joined(separator: ", "),
                "sfuctl call server.undrain, unless that is on purpose"
            )
        }
        return .ok("daemon", words.joined(separator: ", "))
    }

    private var version: Finding? {
        guard let version = facts.daemon?.info.version, version != facts.version else {
            return nil
        }
        return .warning(
            "version",
            "sfuctl is \(facts.version), sfud \(version)",
            "sfuctl upgrade replaces the running sfud, if the new one is installed"
        )
    }

    private var load: Finding? {
        guard let stats = facts.daemon?.stats else { return nil }
        let words = stats.workers.map { worker in
            let step = worker.pressure.step == .none ? "" : ", sheds \(worker.pressure.step)"
            return "worker \(worker.worker) \(TopView.percent(worker.pressure.busy))\(step)"
        }
        let text = words.joined(separator: ", ")
        let advice = "send new rooms to another machine, or drain this one (docs/capacity.md)"
        if stats.workers.contains(where: { $0.pressure.step != .none }) {
            return .fault("load", text, advice)
        }
        let isBusy = stats.workers.contains { $0.pressure.busy > Self.mostBusy }
        return isBusy ? .warning("load", text, advice) : .ok("load", text)
    }

    private var clock: Finding {
        let clock = facts.clock
        if clock.unixTime < Self.earliest {
            return .fault("clock", "the time of day is long past", "set it, and keep it by NTP")
        }
        if abs(clock.drift) > Self.mostDrift {
            return .warning(
                "clock",
                "the time of day jumps or is being corrected quickly",
                "reports to clients and recordings carry it: see what sets it (chronyc tracking)"
            )
        }
        switch clock.isSynchronized {
        case true?:
            let error = Int((clock.error * 1_000).rounded(.up))
            return .ok("clock", "synchronized, at most \(error) ms off")
        case false?:
            return .warning(
                "clock",
                "nothing keeps the time of day synchronized",
                "events and recordings carry it: install chrony or systemd-timesyncd, unless the "
                    + "host of this machine sees to it"
            )
        case nil: return .ok("clock", "sane; the kernel does not say whether it is synchronized")
        }
    }

    private var descriptors: Finding? {
        guard let program = facts.program else { return nil }
        guard let limit = program.fileLimit else {
            return .warning("files", "the limit of open files cannot be read", Self.asRoot)
        }
        let open = program.openFiles.map { "\($0) of \(limit) open" } ?? "at most \(limit) open"
        guard let info = facts.daemon?.info else { return .ok("files", open) }
        // A listener has connections of all its workers; some more are for files and pipes.
        let tcp = info.tcp == nil ? 0 : (info.limits["tcpConnections"] ?? 0) &* info.workers
        let needed = tcp &+ (info.limits["ipcConnections"] ?? 0) &+ Self.otherFiles
        if let used = program.openFiles, Double(used) > Double(limit) * 0.9 {
            return .fault("files", open, "raise LimitNOFILE= of the unit to \(needed)")
        }
        if limit < needed {
            let advice = "raise LimitNOFILE= of the unit, or lower limits.tcpConnections"
            return .warning("files", "\(open), the limits add up to \(needed)", advice)
        }
        return .ok("files", open)
    }

    private var kernel: Finding {
        let kernel = facts.kernel
        if kernel.memory == false {
            return .fault("kernel", "Linux \(kernel.release) has no memfd", "sfud needs it")
        }
        let lacking = [
            ("UDP_SEGMENT", kernel.segments, "sending takes more processor time"),
            ("timestamps of arrivals", kernel.timestamps, "waiting times are not known"),
            ("Landlock", kernel.landlock, "live streams decode with more rights than needed"),
            ("seccomp", kernel.seccomp, "live streams decode with more rights than needed"),
        ].filter { $0.1 == false }
        guard lacking.isEmpty else {
            return .warning(
                "kernel",
                "Linux \(kernel.release) lacks \(lacking.map(\.0).joined(separator: ", "))",
                Set(lacking.map(\.2)).sorted().joined(separator: "; ")
            )
        }
        return .ok("kernel", "Linux \(kernel.release), with all that sfud uses")
    }

    private var disk: Finding? {
        guard let disk = facts.disk else {
            guard facts.daemon != nil else { return nil }
            return .warning("disk", "the directory of recordings is not known", Self.asRoot)
        }
        let place = disk.exists ? disk.directory : "\(disk.directory), which is not there yet"
        let text = "\(Self.bytes(disk.free)) free for recordings in \(place)"
        let least = facts.daemon?.info.limits["recordingFreeBytes"] ?? 0
        let advice = "move finished recordings away, or name another directory by --recordings"
        if disk.free <= least { return .fault("disk", text, advice) }
        let isShort = disk.free < Self.shortDisk && disk.free < disk.size / 10
        return isShort ? .warning("disk", text, advice) : .ok("disk", text)
    }

    private var libraries: [Finding] {
        let missing = facts.libraries.filter(\.isMissing).map(\.name)
        if !missing.isEmpty {
            let text = "\(missing.joined(separator: ", ")) cannot be found"
            return [.fault("libraries", text, "install the packages that docs/installing.md names")]
        }
        guard !facts.libraries.isEmpty else {
            return [.warning("libraries", "those of sfud cannot be read", Self.asRoot)]
        }
        let text = facts.libraries.map { library in
            library.version.map { "\(library.name) \($0)" } ?? library.name
        }
        .joined(separator: ", ")
        let replaced = facts.libraries.filter(\.isReplaced).map(\.name)
        guard replaced.isEmpty else {
            return [
                .warning(
                    "libraries",
                    "sfud still uses old files of \(replaced.joined(separator: ", "))",
                    "sfuctl upgrade loads the new ones, and calls go on"
                )
            ]
        }
        return [.ok("libraries", text)]
    }

    static let asRoot = "run sfuctl doctor as root or as sfud's user"
    private static let mostBusy = 0.7
    /// 2024-01-01, in Unix seconds.
    private static let earliest = 1_704_067_200.0
    /// Seconds within the time that the clocks are watched.
    private static let mostDrift = 0.02
    private static let otherFiles = 256
    private static let shortDisk = 10 << 30

    static func bytes(_ count: Int) -> String {
        for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        where count >= unit {
            return "\(count / unit) \(name)"
        }
        return "\(count) bytes"
    }
}
