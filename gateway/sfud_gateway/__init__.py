"""A gateway between the Internet and sfud: tokens, signalling, WHIP, WHEP and webhooks."""

__version__ = "0.2.0"
