"""The configuration file: TOML with closed keys, and secrets in files of their own."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfud_gateway.keys import ConfigError, Key, key_of, secret_of
from sfud_gateway.sfud_ipc import default_path

TENANT = r"[a-z0-9][a-z0-9-]{0,31}"
EVERYTHING = {"audio": True, "video": True, "screen": True}
# Permissions of moderators unless a tenant has roles of its own. They include neither recording
# nor streaming, which cost the operator's disk and network.
MODERATION = [
    "changeRole", "mute", "lock", "drop", "close", "approve", "floor", "pin", "state", "mode",
    "unpublish",
]  # fmt: skip
ROLES: list[dict[str, Any]] = [
    {"name": "moderator", "publish": EVERYTHING, "permissions": MODERATION},
    {"name": "participant", "publish": EVERYTHING},
    {"name": "viewer"},
]
WEBHOOK_EVENTS = (
    "room.created", "room.closed", "participant.joined", "participant.left",
    "recording.started", "recording.stopped", "recording.failed",
    "streaming.started", "streaming.stopped",
)  # fmt: skip
REQUIRED: Any = object()


@dataclass(frozen=True)
class Limits:
    """Limits of one tenant."""

    rooms: int = 1_000
    participants: int = 10_000
    joins_per_second: int = 100
    message_bytes: int = 300_000
    messages_per_second: int = 50  # of one connection
    webhooks: int = 100_000  # that wait for delivery


@dataclass(frozen=True)
class Webhook:
    url: str
    secrets: tuple[bytes, ...] = field(repr=False)
    events: tuple[str, ...] = WEBHOOK_EVENTS
    timeout_seconds: int = 10
    give_up_seconds: int = 259_200


@dataclass(frozen=True)
class Tenant:
    name: str
    keys: dict[str, Key]
    limits: Limits
    webhook: Webhook | None
    settings: dict[str, Any]
    streaming_hosts: frozenset[str]


@dataclass(frozen=True)
class Turn:
    urls: tuple[str, ...]
    secret: bytes = field(repr=False)
    seconds: int = 3_600


@dataclass(frozen=True)
class Address:
    host: str
    port: int


@dataclass(frozen=True)
class Config:
    listen: Address
    admin: Address | None
    ipc: str
    state: Path
    origins: tuple[str, ...]
    audience: str | None
    token_seconds: int
    leeway_seconds: int
    grace_seconds: int
    join_seconds: int
    connections: int
    certificate: Path | None
    key: Path | None
    stun: tuple[str, ...]
    turn: tuple[Turn, ...]
    tenants: dict[str, Tenant]

    def needs_restart(self, other: "Config") -> list[str]:
        """Returns the keys that differ and that a reload cannot change."""
        names = [name for name in ("listen", "admin", "ipc", "state")
                 if getattr(self, name) != getattr(other, name)]  # fmt: skip
        if (self.certificate is None) != (other.certificate is None):
            names.append("tls")
        return names


class Section:
    """A table of the file; each key is taken once, and `end` refuses those that are left."""

    def __init__(self, values: Any, path: str, folder: Path):
        if not isinstance(values, dict):
            raise ConfigError(f"{path or 'the file'}: is no table")
        self._values, self._path, self._folder = dict(values), path, folder

    def name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def take(self, key: str, kind: type, default: Any = REQUIRED) -> Any:
        value = self._values.pop(key, default)
        if value is REQUIRED:
            raise ConfigError(f"{self.name(key)}: is missing")
        if value is not default and type(value) is not kind:
            raise ConfigError(f"{self.name(key)}: is no {kind.__name__}")
        return value

    def number(self, key: str, default: int, least: int, most: int) -> int:
        value = self.take(key, int, default)
        if not least <= value <= most:
            raise ConfigError(f"{self.name(key)}: is not in {least} to {most}")
        return value

    def texts(self, key: str, default: Any = ()) -> tuple[str, ...]:
        values = self.take(key, list, default)
        if not all(isinstance(it, str) and it for it in values):
            raise ConfigError(f"{self.name(key)}: is no list of strings")
        return tuple(values)

    def file(self, key: str, default: Any = REQUIRED) -> Path | None:
        value = self.take(key, str, default)
        return None if value is None else self._folder / value

    def section(self, key: str) -> "Section":
        return Section(self._values.pop(key, {}), self.name(key), self._folder)

    def sections(self, key: str) -> list["Section"]:
        values = self._values.pop(key, [])
        if not isinstance(values, list):
            raise ConfigError(f"{self.name(key)}: is no list of tables")
        return [Section(it, f"{self.name(key)}[{at}]", self._folder)
                for at, it in enumerate(values)]  # fmt: skip

    def tables(self, key: str) -> dict[str, "Section"]:
        values = self._values.pop(key, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{self.name(key)}: is no table")
        return {name: Section(it, self.name(f"{key}.{name}"), self._folder)
                for name, it in values.items()}  # fmt: skip

    @property
    def is_empty(self) -> bool:
        return not self._values

    def end(self) -> None:
        if self._values:
            raise ConfigError(f"{self.name(next(iter(self._values)))}: is not known")


def address(section: Section, key: str, default: Any = REQUIRED) -> Address | None:
    text = section.take(key, str, default)
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{section.name(key)}: is no ADDRESS:PORT")
    return Address(host.strip("[]"), int(port))


def limits(section: Section) -> Limits:
    d = Limits()
    found = Limits(
        rooms=section.number("rooms", d.rooms, 1, 100_000),
        participants=section.number("participants", d.participants, 1, 1_000_000),
        joins_per_second=section.number("joins_per_second", d.joins_per_second, 1, 10_000),
        message_bytes=section.number("message_bytes", d.message_bytes, 1_000, 1_000_000),
        messages_per_second=section.number("messages_per_second", d.messages_per_second, 1, 10_000),
        webhooks=section.number("webhooks", d.webhooks, 1, 10_000_000),
    )
    section.end()
    return found


def webhook(section: Section) -> Webhook | None:
    if section.is_empty:
        return None
    url = section.take("url", str)
    if not re.fullmatch(r"https?://[^\s]+", url):
        raise ConfigError(f"{section.name('url')}: is no http or https URL")
    files = section.texts("secret_files")
    if not files:
        raise ConfigError(f"{section.name('secret_files')}: is missing")
    found = Webhook(
        url=url,
        secrets=tuple(secret_of(section._folder / it) for it in files),
        events=section.texts("events", WEBHOOK_EVENTS),
        timeout_seconds=section.number("timeout_seconds", 10, 1, 60),
        give_up_seconds=section.number("give_up_seconds", 259_200, 60, 2_592_000),
    )
    section.end()
    return found


def tenant(name: str, section: Section) -> Tenant:
    if not re.fullmatch(TENANT, name):
        raise ConfigError(f"tenants.{name}: is no name of a tenant: {TENANT}")
    keys: dict[str, Key] = {}
    for part in section.sections("keys"):
        key = key_of(
            part.take("kid", str), part.take("algorithm", str),
            part.file("secret_file", None) or part.file("public_key_file", None),
            part.name("kid"),
        )  # fmt: skip
        part.end()
        if key.kid in keys:
            raise ConfigError(f"{part.name('kid')}: {key.kid} is there twice")
        keys[key.kid] = key
    if not keys:
        raise ConfigError(f"{section.name('keys')}: is missing")
    settings = section.take("settings", dict, {})
    found = Tenant(
        name=name, keys=keys, limits=limits(section.section("limits")),
        webhook=webhook(section.section("webhook")),
        settings={"roles": ROLES} | settings,
        streaming_hosts=frozenset(it.lower() for it in section.texts("streaming_hosts")),
    )  # fmt: skip
    section.end()
    return found


def turn(section: Section) -> Turn:
    urls = section.texts("urls")
    for url in urls:
        if not re.fullmatch(r"turns?:[^\s\"<>,;]+", url):
            raise ConfigError(f"{section.name('urls')}: {url} is no turn or turns URI")
    found = Turn(
        urls, secret_of(section.file("secret_file")), section.number("seconds", 3_600, 60, 864_000)
    )
    section.end()
    return found


def parse(values: dict[str, Any], folder: Path) -> Config:
    root = Section(values, "", folder)
    tls, ice = root.section("tls"), root.section("ice")
    origins = root.texts("origins", ("*",))
    stun = ice.texts("stun")
    if not all(re.fullmatch(r"stuns?:[^\s\"<>,;]+", it) for it in stun):
        raise ConfigError("ice.stun: has an entry that is no stun URI")
    found = Config(
        listen=address(root, "listen", "127.0.0.1:8080"),  # type: ignore[arg-type]
        admin=address(root, "admin", None),
        ipc=root.take("ipc", str, default_path()),
        state=folder / root.take("state", str),
        origins=origins,
        audience=root.take("audience", str, None),
        token_seconds=root.number("token_seconds", 86_400, 60, 31_536_000),
        leeway_seconds=root.number("leeway_seconds", 30, 0, 600),
        grace_seconds=root.number("grace_seconds", 30, 1, 3_600),
        join_seconds=root.number("join_seconds", 20, 1, 600),
        connections=root.number("connections", 10_000, 1, 1_000_000),
        certificate=tls.file("certificate", None),
        key=tls.file("key", None),
        stun=stun,
        turn=tuple(turn(it) for it in ice.sections("turn")),
        tenants={name: tenant(name, it) for name, it in root.tables("tenants").items()},
    )
    for section in (tls, ice, root):
        section.end()
    if not found.tenants:
        raise ConfigError("tenants: is missing")
    if (found.certificate is None) != (found.key is None):
        raise ConfigError("tls: has certificate and key, or neither")
    return found


def load(path: Path) -> Config:
    """Returns the configuration; raises `ConfigError`, which names the key and no secret."""
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return parse(values, path.resolve().parent)
