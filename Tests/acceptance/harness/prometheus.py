"""Debian's Prometheus, its promtool, and what the repository has for it."""

import asyncio
import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

from harness import process
from harness.process import until
from harness.sfud import REPOSITORY, free_ports

RULES = REPOSITORY / "deploy/prometheus/sfud.rules.yml"
TESTS = REPOSITORY / "deploy/prometheus/sfud.test.yml"
DASHBOARD = REPOSITORY / "deploy/grafana/sfud.json"

#: Words of PromQL that look like metrics.
WORDS = set(
    "and avg avg_over_time by changes count group_left histogram_quantile ignoring increase"
    " max max_over_time on or predict_linear rate sum topk without".split()
)
#: Series of Prometheus's own.
OWN = {"up", "ALERTS"}


def promtool(*arguments, text: str | None = None) -> tuple[int, str]:
    """Returns the status, and what it printed."""
    done = subprocess.run(
        ["promtool", *map(str, arguments)],
        input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout


def rules() -> dict[str, str]:
    """Returns the expressions of the rules, by the name of the alert or of what is recorded."""
    found, name, folded = {}, None, None
    for line in RULES.read_text().splitlines():
        indent = len(line) - len(line.lstrip())
        if folded is not None and indent > folded:
            found[name] += f" {line.strip()}"
            continue
        folded = None
        if begun := re.match(r"\s*- (?:alert|record): (\S+)$", line):
            name = begun[1]
        elif given := re.match(r"(\s*)expr: (.*)$", line):
            found[name] = "" if given[2] == ">-" else given[2]
            folded = len(given[1]) if given[2] == ">-" else None
    return found


def queries() -> list[str]:
    """Returns the dashboard's queries, with its variables filled in."""
    board = json.loads(DASHBOARD.read_text())
    found = [note["expr"] for note in board["annotations"]["list"]]
    for panel in board["panels"]:
        found += [target["expr"] for target in panel.get("targets", [])]
    return [
        query.replace("$__rate_interval", "1m").replace("$instance", ".*") for query in found
    ]


def selectors(query: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Returns the series that a query names, each with its matchers: label, operator, value."""
    found = []
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left) *\([^)]*\)", " ", query)
    pattern = r"([a-zA-Z_:][a-zA-Z0-9_:]*+)\s*+(\{[^}]*\})?+(?!\s*\()"
    for name, matchers in re.findall(pattern, re.sub(r"\[[^]]*\]", "", bare)):
        if name in WORDS:
            continue
        found.append((name, re.findall(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"', matchers)))
    return found


def samples(page: str) -> dict[str, list[dict[str, str]]]:
    """Returns the label sets of a page of metrics, by the series' name."""
    found: dict[str, list[dict[str, str]]] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, labels = re.match(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? ", line).groups()
            found.setdefault(name, []).append(dict(re.findall(r'(\w+)="([^"]*)"', labels or "")))
    return found


class Prometheus:
    """A server on loopback that scrapes one target, with the repository's rules."""

    def __init__(self, directory: Path, port: int):
        self.directory = directory
        self.port = port

    @classmethod
    async def start(cls, directory: Path, target: str) -> "Prometheus":
        server = cls(directory, free_ports())
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: ['{RULES}']\n"
            "scrape_configs:\n"
            f"  - {{job_name: sfud, static_configs: [{{targets: ['{target}']}}]}}\n"
        )
        server.process = await process.start(
            "prometheus",
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{server.port}",
            output=directory / "prometheus.log",
        )

        async def is_ready():
            return await server.ask("/-/ready", raw=True) is not None

        try:
            await until(is_ready, "Prometheus is ready", 20)
        except BaseException:
            await server.stop()
            raise
        return server

    async def ask(self, path: str, raw: bool = False, **parameters):
        """Returns the `data` of an answer of the API; `None` if there is no answer."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"

        def fetch():
            try:
                with urllib.request.urlopen(url, timeout=5) as reply:
                    return reply.read().decode()
            except urllib.error.HTTPError as error:
                return None if raw else error.read().decode()
            except OSError:
                return None

        text = await asyncio.to_thread(fetch)
        if raw or text is None:
            return text
        answer = json.loads(text)
        assert answer["status"] == "success", f"{parameters}: {answer.get('error')}"
        return answer["data"]

    async def query(self, query: str) -> list[dict]:
        return (await self.ask("/api/v1/query", query=query))["result"]

    async def stop(self) -> None:
        await process.kill(self.process)
