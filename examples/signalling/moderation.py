"""What browsers ask of the room itself: each message, and the call to sfud that it becomes.

The third column says in which parameter sfud is told who asks, always the session's own
participant: `by`, whose role must have the right; `participant`, who asks for itself; `from`, who
sends a message. So no browser acts for another, and sfud alone decides who may do what.
"""

CALLS = {
    "lock": ("room.lock", "by"),
    "unlock": ("room.unlock", "by"),
    "muteAll": ("room.hardMute", "by"),
    "unmuteAll": ("room.hardUnmute", "by"),
    "close": ("room.close", "by"),
    "record": ("recording.start", "by"),
    "stopRecord": ("recording.stop", "by"),
    "stream": ("streaming.start", "by"),
    "stopStream": ("streaming.stop", "by"),
    "setState": ("room.setState", "by"),
    "mute": ("participant.hardMute", "by"),
    "unmute": ("participant.hardUnmute", "by"),
    "drop": ("participant.drop", "by"),
    "approve": ("participant.approve", "by"),
    "deny": ("participant.deny", "by"),
    "pin": ("pin.add", "by"),
    "unpin": ("pin.remove", "by"),
    "transfer": ("moderator.transfer", "by"),
    "setMode": ("participant.setMode", "by"),
    "changeRole": ("role.change", "by"),
    "acceptRole": ("role.accept", "participant"),
    "declineRole": ("role.decline", "participant"),
    "requestFloor": ("floor.request", "participant"),
    "cancelFloor": ("floor.cancel", "participant"),
    "finishFloor": ("floor.finish", "participant"),
    "grantFloor": ("floor.grant", "by"),
    "denyFloor": ("floor.deny", "by"),
    "releaseFloor": ("floor.release", "by"),
    "listen": ("message.subscribe", "participant"),
    "say": ("message.publish", "from"),
}


def call(message: dict, room: str, me: str) -> tuple[str, dict]:
    """The method and the parameters for a message that `messages.checked` has let through."""
    method, who = CALLS[message["type"]]
    wish = {key: value for key, value in message.items() if key not in ("type", "id")}
    return method, wish | {"room": room, who: me}
