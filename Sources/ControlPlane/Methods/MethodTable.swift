import Contract
import JSON
import RTP
import Rooms

/// Method of the contract, as the control plane carries it out: name, params, call and reply.
///
/// A new method is a row in the list of its group, beside the function that handles it.
struct Method: Sendable {
    typealias Handler<Params> =
        @Sendable (
            _ plane: inout ControlPlane,
            _ params: Params,
            _ caller: Caller,
            _ now: Instant
        ) throws(IPCError) -> Void

    let name: String
    /// Name, params and result.
    let contract: any IPCMethod.Type
    /// Decodes the params and carries the call out; the reply follows when it has taken effect.
    let carryOut: Handler<IPCRequest>

    /// Makes the method whose handler gives the reply itself.
    init<Contract: IPCMethod>(
        _ method: Contract.Type,
        _ handler: @escaping Handler<Contract.Params>
    ) {
        name = method.name
        contract = method
        carryOut = { plane, request, caller, now throws(IPCError) in
            try handler(&plane, request.params(Contract.Params.self), caller, now)
        }
    }

    /// Makes the method that is one call of its room and replies `Done`.
    init<Contract: IPCMethod>(
        _ method: Contract.Type,
        in room: any KeyPath<Contract.Params, RoomID> & Sendable,
        call: @escaping @Sendable (Contract.Params) -> Room.Call
    ) where Contract.Result == Done {
        self.init(method) { plane, params, caller, now throws(IPCError) in
            try plane.call(call(params), in: params[keyPath: room], for: caller, at: now)
        }
    }

    /// All methods of the contract, by name.
    static let table = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    private static let all: [Method] =
        serverMethods + statisticsMethods + roomMethods + participantMethods + roleMethods
        + floorMethods
        + mediaMethods + messageMethods + recordingMethods + streamingMethods + rtpForwardMethods

    /// Methods as the contract declares them, in the order of their groups.
    static let contracts = all.map(\.contract)

    /// Encoded description of the contract; made once, as it takes some milliseconds.
    static let description = EncodedJSON(
        bytes: JSON.encoded(ContractDocument(methods: contracts).json)
    )
}

extension ControlPlane {
    /// Carries out the method that a request names, or throws the error of a refusal.
    mutating func carryOut(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        guard let method = Method.table[request.method] else {
            throw .noSuchMethod(request.method)
        }
        try method.carryOut(&self, request, caller, now)
    }
}
