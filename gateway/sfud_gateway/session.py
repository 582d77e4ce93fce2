"""A participant as the gateway knows it."""

import asyncio
from typing import Any, Protocol

from sfud_gateway.tokens import Grant

# Fields that a restart must not lose; sfud knows the rest.
KEPT = ("digest", "subject", "token_role", "name_fixed", "custom_fixed", "extra", "roles")


class Connection(Protocol):
    def send(self, text: str) -> None: ...

    def lose(self, session: "Session", event: str, reason: str) -> None: ...


class Session:
    """It outlives a broken WebSocket for a while, and a restart of the gateway.

    `kind` is its way of entry: `ws`, `whip` or `whep`. `extra` is what WHIP and WHEP keep of it.
    """

    def __init__(self, key: str, tenant: str, room: str, id: str, kind: str):
        self.key, self.tenant, self.room, self.id, self.kind = key, tenant, room, id, kind
        self.role, self.awaited = "participant", False
        self.digest = ""  # of the token that it came with
        self.subject = False  # whether the token names it
        self.token_role: str | None = None
        self.roles: dict[str, list[str]] | None = None  # rights of the room's, if not the tenant's
        self.name_fixed = self.custom_fixed = False
        self.extra: dict[str, Any] = {}
        self.connection: Connection | None = None
        self.seq = 0  # of the last event that the client's picture of the room includes
        self.held: list[tuple[dict, str]] | None = None  # events that wait for that picture
        self.expiry: asyncio.TimerHandle | None = None
        self.went_away = False  # with its page, which may be loaded again
        self.is_leaving = False

    @property
    def sfud_room(self) -> str:
        return f"{self.tenant}:{self.room}"

    def came_with(self, grant: Grant) -> None:
        self.digest, self.subject = grant.digest, grant.participant is not None
        self.token_role = grant.role
        self.name_fixed, self.custom_fixed = grant.name is not None, grant.custom is not None

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in KEPT}

    def restore(self, fields: dict[str, Any]) -> None:
        for name in KEPT:
            if name in fields:  # an earlier version has written fewer
                setattr(self, name, fields[name])

    def hears(self, audience: Any) -> bool:
        """Whether an event's `audience` includes it: a list, all who are admitted, or all but."""
        if isinstance(audience, list):
            return self.id in audience
        return not self.awaited and (audience == "all" or self.id not in audience["except"])

    def follow(self, event: dict) -> None:
        """Takes over what an event says of this participant."""
        data = event["data"]
        if data.get("participant") != self.id:
            return
        match event["event"]:
            case "participant.roleChanged":
                self.role = data["current"]
            case "participant.approved":
                self.awaited = False

    def take(self, event: dict, text: str) -> None:
        """Takes an event of its room, and passes it on if it concerns the client."""
        if self.held is not None:
            self.held.append((event, text))
        elif event.get("seq", 0) > self.seq:
            self.seq = event["seq"]
            # An approval, or a new role, decides on what it hears from the next event on.
            self.follow(event)
            if self.connection and self.hears(event["audience"]):
                self.connection.send(text)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for event, text in held:
            self.take(event, text)
