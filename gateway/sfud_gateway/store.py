"""The gateway's memory on disk.

Everything that one event of sfud changes is committed together with that event's `seq`. After a
crash the next process asks sfud for the events since then, so none is lost and none counts twice.
For the same reason a commit need not wait for the disk: a power failure takes sfud's rooms too.
"""

import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VERSION = 1
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE rooms (id TEXT PRIMARY KEY, seq INTEGER);
CREATE TABLE people (room TEXT, participant TEXT, PRIMARY KEY (room, participant));
CREATE TABLE sessions (key TEXT PRIMARY KEY, room TEXT, participant TEXT, kind TEXT, fields TEXT);
CREATE TABLE rights (room TEXT, who TEXT, at REAL, revoked INTEGER, previous TEXT, role TEXT,
    PRIMARY KEY (room, who, revoked));
CREATE TABLE webhooks (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, tenant TEXT, room TEXT,
    event TEXT, body TEXT, created REAL);
CREATE TABLE lost (tenant TEXT PRIMARY KEY, count INTEGER, first REAL, last REAL);
"""


class Store:
    """One SQLite file. Rooms are named as sfud knows them."""

    def __init__(self, folder: Path):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "gateway.sqlite3"
        path.touch(mode=0o600)
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # one gateway for a folder
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._db.executescript(SCHEMA + f"PRAGMA user_version = {VERSION};")
        elif version != VERSION:
            raise ValueError(f"{path} is of another version of the gateway")
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('boot', NULL)")
        self._db.commit()

    def commit(self) -> None:
        self._db.commit()

    def close(self) -> None:
        self._db.commit()
        self._db.close()

    def _all(self, sql: str, *values: Any) -> list[tuple]:
        return self._db.execute(sql, values).fetchall()

    # The state of sfud as far as its events have told.

    @property
    def boot(self) -> str | None:
        return self._all("SELECT value FROM meta WHERE key = 'boot'")[0][0]

    @boot.setter
    def boot(self, value: str | None) -> None:
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'boot'", (value,))

    def rooms(self) -> dict[str, int]:
        return dict(self._all("SELECT id, seq FROM rooms"))

    def people(self) -> list[tuple[str, str]]:
        return self._all("SELECT room, participant FROM people")

    def saw(self, room: str, seq: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO rooms VALUES (?, ?)", (room, seq))

    def forget_room(self, room: str) -> None:
        self._db.execute("DELETE FROM rooms WHERE id = ?", (room,))
        self._db.execute("DELETE FROM people WHERE room = ?", (room,))
        self._db.execute("DELETE FROM rights WHERE room = ? AND NOT revoked", (room,))

    def add_person(self, room: str, participant: str) -> None:
        self._db.execute("INSERT OR IGNORE INTO people VALUES (?, ?)", (room, participant))

    def remove_person(self, room: str, participant: str) -> None:
        self._db.execute(
            "DELETE FROM people WHERE room = ? AND participant = ?", (room, participant)
        )

    # Sessions, by the hash of their key.

    def sessions(self) -> list[tuple[str, str, str, str, dict]]:
        rows = self._all("SELECT key, room, participant, kind, fields FROM sessions")
        return [(*row[:4], json.loads(row[4])) for row in rows]

    def save_session(self, key: str, room: str, participant: str, kind: str, fields: dict) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)",
            (key, room, participant, kind, json.dumps(fields)),
        )

    def forget_session(self, key: str) -> None:
        self._db.execute("DELETE FROM sessions WHERE key = ?", (key,))

    # Rights that changed since a token was signed; `who` is a participant or a token's digest.

    def revoke(self, room: str, who: str, at: float) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO rights VALUES (?, ?, ?, 1, NULL, NULL)", (room, who, at)
        )

    def change_role(self, room: str, who: str, at: float, previous: str, role: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO rights VALUES (?, ?, ?, 0, ?, ?)",
            (room, who, at, previous, role),
        )

    def rights(self, room: str, who: str, since: float) -> list[tuple[bool, str, str]]:
        """Returns changes at or after the time `since`: whether it is revoked, or the roles."""
        return self._all(
            "SELECT revoked, previous, role FROM rights WHERE room = ? AND who = ? AND at >= ?",
            room, who, since,
        )  # fmt: skip

    def forget_rights(self, before: float) -> None:
        self._db.execute("DELETE FROM rights WHERE at < ?", (before,))

    # Webhooks that wait.

    def queued(self) -> list[tuple[int, str, str]]:
        return self._all("SELECT n, tenant, room FROM webhooks ORDER BY n")

    def enqueue(
        self, id: str, tenant: str, room: str, event: str, body: str
    ) -> int | None:
        """Returns its number; `None` if it waits already."""
        row = self._db.execute(
            "INSERT OR IGNORE INTO webhooks (id, tenant, room, event, body, created)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (id, tenant, room, event, body, time.time()),
        )
        return row.lastrowid if row.rowcount == 1 else None

    def webhook(self, n: int) -> tuple[str, str, str, float] | None:
        """Returns id, event, body and time of creation."""
        rows = self._all("SELECT id, event, body, created FROM webhooks WHERE n = ?", n)
        return rows[0] if rows else None  # type: ignore[return-value]

    def delete_webhooks(self, numbers: Iterable[int]) -> None:
        self._db.executemany("DELETE FROM webhooks WHERE n = ?", [(n,) for n in numbers])

    def lose(self, tenant: str, at: float) -> None:
        self._db.execute(
            "INSERT INTO lost VALUES (?, 1, ?, ?) ON CONFLICT (tenant) DO UPDATE"
            " SET count = count + 1, last = excluded.last",
            (tenant, at, at),
        )

    def take_lost(self, tenant: str) -> tuple[int, float, float] | None:
        rows = self._all("SELECT count, first, last FROM lost WHERE tenant = ?", tenant)
        self._db.execute("DELETE FROM lost WHERE tenant = ?", (tenant,))
        return rows[0] if rows else None  # type: ignore[return-value]
