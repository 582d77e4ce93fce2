"""Rights that changed since a token was signed: a drop revokes it, a changed role counts."""

from typing import Any

from sfud_gateway.config import Tenant
from sfud_gateway.refusals import refuse
from sfud_gateway.session import Session
from sfud_gateway.store import Store
from sfud_gateway.tokens import Grant


def rights_of(tenant: Tenant | None, role: str) -> set[str]:
    """Returns what a role may do and send."""
    for found in tenant.settings["roles"] if tenant else ():
        if found.get("name") == role:
            sends = {kind for kind, value in found.get("publish", {}).items() if value}
            return sends | set(found.get("permissions", ()))
    return set()


class Rights:
    def __init__(self, store: Store):
        self.store = store

    def role(self, grant: Grant, room: str) -> str | None:
        """Returns the role that a token gives now; raises `Refused` if it is revoked."""
        token = self.store.rights(room, "token:" + grant.digest, 0)
        own: list[tuple[bool, str, str]] = []
        if grant.participant:
            own = self.store.rights(room, "sub:" + grant.participant, grant.issued)
        if any(revoked for revoked, _, _ in [*token, *own]):
            raise refuse("token-revoked", "this participant was removed from the room")
        for _, previous, role in token:
            if previous == (grant.role or "participant"):
                return role
        return own[0][2] if own else grant.role

    def revoke(self, room: str, participant: str, at: float, sessions: list[Session]) -> None:
        self.store.revoke(room, "sub:" + participant, at)
        for session in sessions:
            self.store.revoke(room, "token:" + session.digest, at)

    def change_role(
        self, room: str, event: dict[str, Any], sessions: list[Session], tenant: Tenant | None
    ) -> None:
        data, at = event["data"], event["time"]
        previous, current = data["previous"], data["current"]
        self.store.change_role(room, "sub:" + data["participant"], at, previous, current)
        # A shared token gives nobody the rights that one of its holders was given, and takes from
        # all of them the rights that one has lost.
        if rights_of(tenant, previous) <= rights_of(tenant, current):
            return
        for session in sessions:
            if not session.subject and previous == (session.token_role or "participant"):
                self.store.change_role(room, "token:" + session.digest, at, previous, current)
