import ControlPlane
import Kernel
import RTP
import Sockets

/// Upgrade that the event loop carries out.
struct PendingUpgrade {
    var check: BinaryCheck
    /// Version of the checked program; the process is replaced when the reply is out.
    var version: String?
}

// Replacement of the program, by `server.upgrade` or SIGHUP.
extension EventLoop {
    /// Starts the check of a program, by default the one that was started.
    mutating func beginUpgrade(_ binary: String?, at now: Instant) {
        do throws(UpgradeRefusal) {
            let path: String
            if let binary { path = binary } else { path = try replacement.standardBinary() }
            let check = try BinaryCheck(path, at: now)
            do throws(SystemError) {
                let token = PollerToken.upgrade.rawValue
                try poller.add(check.descriptor, for: .readable, token: token)
                upgrade = PendingUpgrade(check: check)
            } catch {
                check.close()
                throw UpgradeRefusal(detail: "\(error)")
            }
        } catch {
            control.concludeUpgrade(refusal: error.detail)
        }
    }

    /// Continues the check; replies when it is done.
    mutating func continueUpgrade(at now: Instant) {
        guard upgrade?.version == nil, let outcome = upgrade?.check.read(at: now) else { return }
        // Closing the descriptor also removes it from the poller.
        upgrade?.check.close()
        var obstacle = control.upgradeObstacle
        let isUsed = control.roomCount + control.guestTransports > 0
        if obstacle == nil, isUsed { obstacle = calls.obstacle }
        switch outcome {
        case .success(let version) where obstacle == nil:
            upgrade?.version = version
            control.concludeUpgrade(refusal: nil)
        case .success:
            upgrade = nil
            control.concludeUpgrade(refusal: obstacle)
        case .failure(let refusal):
            upgrade = nil
            control.concludeUpgrade(refusal: refusal.detail)
        }
    }

    /// Replaces the process if that is due.
    mutating func replaceIfDue() {
        guard let upgrade, let version = upgrade.version else { return }
        self.upgrade = nil
        let path = upgrade.check.path
        log.info("upgrade", [("from", setup.version), ("to", version), ("binary", path)])
        guard upgrade.check.isCurrent else {
            log.error("upgrade failed", [("reason", "\(path) has changed since it was checked")])
            return
        }
        log.flush(milliseconds: Self.logMilliseconds)
        handover.manager.notify(.reloading)
        handOver()
        var refusal = replacement.replaceProcess(by: upgrade.check, descriptors: handover.kept)
        // The workers have ended, so this program goes on with the calls as the new one would have.
        log.error("upgrade failed", [("reason", refusal.detail)])
        log.flush(milliseconds: Self.logMilliseconds)
        refusal = replacement.restartProcess(descriptors: handover.kept)
        log.error("the program cannot be executed", [("reason", refusal.detail)])
    }

    private static let logMilliseconds = 50
}
