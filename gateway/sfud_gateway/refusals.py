"""The gateway's own refusals, in the form of sfud's."""

from typing import Any

from sfud_gateway.sfud_ipc import Refused

CODES = {
    "parse-error": -32700,
    "invalid-request": -32600,
    "no-such-method": -32601,
    "invalid-params": -32602,
    "internal-error": -32603,
    "not-permitted": 4010,
    "limit-reached": 4029,
    "not-joined": 4400,
    "already-joined": 4409,
    "no-such-session": 4404,
    "token-invalid": 4401,
    "token-expired": 4401,
    "token-not-yet-valid": 4401,
    "token-revoked": 4401,
    "wrong-room": 4403,
    "sfud-not-running": 4503,
    "timeout": 4504,
    "too-long": -32602,
    "wrong-contract": 4503,
}

AWAY = (  # refusals that sfud did not decide on; the last three are of clusters
    "sfud-not-running", "timeout", "wrong-contract",
    "registry-away", "node-unreachable", "outcome-unknown",
)  # fmt: skip


def refuse(reason: str, message: str, **data: Any) -> Refused:
    return Refused(reason, message, CODES[reason], data)


def shown(refused: Refused) -> dict[str, Any]:
    """Returns the error as a client sees it."""
    code = refused.code or CODES.get(refused.reason, -32603)
    message = refused.message
    if refused.reason in AWAY:
        message = "the media server cannot be reached at the moment"  # without the socket's path
    error: dict[str, Any] = {"code": code, "reason": refused.reason, "message": message}
    data = {key: value for key, value in refused.data.items() if key != "reason"}
    return error | ({"data": data} if data else {})
