"""Rights that changed since a token was signed: a drop revokes it, a changed role counts."""

from typing import Any

from sfud_gateway.config import Tenant
from sfud_gateway.refusals import refuse
from sfud_gateway.session import Session
from sfud_gateway.store import Store
from sfud_gateway.tokens import Grant


def rights_of(settings: dict[str, Any]) -> dict[str, set[str]]:
    """Returns what each role of these settings may do and send."""
    rights = {}
    for role in settings.get("roles", ()):
        sends = {kind for kind, value in role.get("publish", {}).items() if value}
        rights[role.get("name")] = sends | set(role.get("permissions", ()))
    return rights


def own_roles(settings: dict[str, Any], tenant: Tenant) -> dict[str, list[str]] | None:
    """Returns the rights of a room's roles where they are not the tenant's, as by a token."""
    rights = rights_of(settings)
    if rights == rights_of(tenant.settings):
        return None
    return {name: sorted(found) for name, found in rights.items()}


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
        usual = rights_of(tenant.settings) if tenant else {}
        for session in sessions:
            if session.subject or previous != (session.token_role or "participant"):
                continue
            rights = usual
            if session.roles is not None:
                rights = {name: set(found) for name, found in session.roles.items()}
            token = "token:" + session.digest
            if not {previous, current} <= rights.keys():
                self.store.revoke(room, token, at)  # nobody can tell a loss from a gain
            elif not rights[previous] <= rights[current]:
                self.store.change_role(room, token, at, previous, current)
