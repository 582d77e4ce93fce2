"""Metrics in the text format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"sfud_gateway_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"sfud_gateway_{name}", text, labels, registry=registry)

        self.sfud_connected = gauge("sfud_connected", "Whether sfud can be reached.")
        self.connections = gauge("connections", "Open WebSockets.")
        self.sessions = gauge("sessions", "Participants by way of entry.", "tenant", "kind")
        self.rooms = gauge("rooms", "Rooms.", "tenant")
        self.joins = counter("joins", "Joins that succeeded.", "tenant", "kind")
        self.refusals = counter("refusals", "Refused requests by reason.", "reason")
        self.calls = counter("calls", "Calls of clients.", "method")
        self.call_seconds = Histogram(
            "sfud_gateway_call_seconds", "Time to answer a client's call.", registry=registry,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
        )  # fmt: skip
        self.webhooks_queued = gauge("webhooks_queued", "Webhooks that wait.", "tenant")
        self.webhooks_delivered = counter("webhooks_delivered", "Delivered webhooks.", "tenant")
        self.webhooks_failed = counter("webhooks_failed_attempts", "Failed attempts.", "tenant")
        self.webhooks_lost = counter(
            "webhooks_lost", "Webhooks that were given up.", "tenant", "cause"
        )
        self.reloads = counter("reloads", "Reloads of the configuration.", "outcome")

    def text(self) -> bytes:
        return generate_latest(self.registry)
