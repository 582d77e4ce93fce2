import Contract
import JSON
import RTP
import Rooms

// Methods of the server as a whole, and those that ask the workers.

extension Method {
    static let serverMethods = [
        Method(ServerInfo.self) { plane, _, caller, _ in
            plane.answer(plane.info, to: caller)
        },
        Method(NodeList.self) { plane, _, caller, _ in
            plane.answer(plane.life.nodes, to: caller)
        },
        Method(ServerDescribe.self) { plane, _, caller, _ in
            plane.answer(Method.description, to: caller)
        },
        Method(ServerStats.self) { plane, _, caller, _ in
            plane.report(.server, for: caller)
        },
        Method(ServerDrain.self) { plane, params, caller, now throws(IPCError) in
            try plane.drain(params, for: caller, at: now)
        },
        Method(ServerUndrain.self) { plane, _, caller, now in plane.undrain(for: caller, at: now) },
        Method(ServerUpgrade.self) { plane, params, caller, _ throws(IPCError) in
            try plane.upgrade(params, for: caller)
        },
        Method(EventsSubscribe.self) { plane, params, caller, _ throws(IPCError) in
            try plane.subscribe(params, for: caller)
        },
        Method(SubscriptionExplain.self) { plane, params, caller, _ throws(IPCError) in
            try plane.explain(params, for: caller)
        },
    ]
}
