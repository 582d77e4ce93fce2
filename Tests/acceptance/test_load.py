"""One publisher with fifty viewers, every packet counted; and the core's cost of a packet.

The binaries lie beside sfud's, unless `SFU_BENCH_BINARY` and `CORE_COST_BINARY` say otherwise.
"""

import asyncio
import json
import signal

import pytest

from harness.bench import figures, finish, start
from harness.sfud import binary


@pytest.mark.alone
@pytest.mark.seconds(90)
@pytest.mark.parametrize("profile", ["gcm", "cm"])
async def test_fifty_viewers_miss_nothing(sfud, ipc, profile):
    load = await start(
        *("sfu-bench", "load"),
        *("--ipc", sfud.ipc, "--pid", sfud.process.pid, "--profile", profile),
        *("--viewers", 50, "--seconds", 6, "--check"),
    )
    status, output, errors = await finish(load)
    assert status == 0, f"{errors}\n{output}"
    print(output)

    report = figures(output)
    expected = int(report["copies expected"])
    assert expected > 50 * 10 * 150
    assert int(report["copies received"]) == expected
    assert int(report["decrypted and compared"]) == expected
    assert int(report["frames decoded"]) == int(report["sent: video frames"])
    for trouble in ("lost", "undecryptable", "discontinuities", "duplicates"):
        assert int(report[trouble]) == 0, trouble
    sent = int(report["sent: audio packets"]) + int(report["sent: video packets"])
    assert int(report["server.stats rtpIn"]) == sent
    assert int(report["server.stats rtpForwarded"]) == sent
    assert int(report["server.stats rtpOut"]) == expected
    assert int(report["server.stats kernelDrops"]) == 0
    assert "µs" in report["CPU a copy"]

    assert (await ipc.call("room.list"))["rooms"] == []


async def test_what_a_publisher_loses_is_asked_for_and_passed_on(sfud):
    load = await start(
        *("sfu-bench", "load"),
        *("--ipc", sfud.ipc, "--viewers", 5, "--seconds", 5, "--lose", 3, "--check"),
    )
    status, output, errors = await finish(load)
    assert status == 0, f"{errors}\n{output}"
    report = figures(output)
    assert int(report["sent: thrown away first"]) > 0
    assert int(report["packets NACKed"]) >= int(report["sent: thrown away first"])
    assert int(report["copies received"]) == int(report["copies expected"])


async def test_an_interrupted_load_closes_its_room(sfud, ipc):
    load = await start("sfu-bench", "load", "--ipc", sfud.ipc, "--viewers", 2, "--seconds", 60)
    while not (await ipc.call("room.list"))["rooms"]:
        await asyncio.sleep(0.05)
    load.send_signal(signal.SIGINT)
    status, _, errors = await asyncio.wait_for(finish(load), 15)
    assert (status, errors) == (130, "")
    assert (await ipc.call("room.list"))["rooms"] == []


@pytest.mark.parametrize(
    "arguments",
    [["--viewers", "0"], ["--viewers"], ["--seconds", "soon"], ["--profile", "des"], ["--fast"]],
    ids=" ".join,
)
async def test_a_wrong_command_line_is_one_clear_line(arguments):
    status, output, errors = await finish(await start("sfu-bench", "load", *arguments))
    assert (status, output) == (2, "")
    assert arguments[0] in errors.splitlines()[0]


async def test_without_a_daemon_it_says_so(tmp_path):
    load = await start("sfu-bench", "load", "--ipc", tmp_path / "none.sock")
    status, output, errors = await finish(load)
    assert (status, output) == (69, "")
    assert "none.sock" in errors and len(errors.splitlines()) == 1


@pytest.mark.alone
@pytest.mark.seconds(120)
async def test_the_bench_measures_sfud_beside_its_floors():
    bench = await start(
        "sfu-bench",
        *("P1", "--viewers", 10, "--seconds", 1, "--json", "--sfud", binary()),
    )
    status, output, errors = await finish(bench)
    assert status == 0, f"{errors}\n{output}"
    outcomes = [json.loads(line) for line in output.splitlines()]
    assert {outcome["system"] for outcome in outcomes} == {"sfud", "floor-1", "floor-G"}
    for outcome in outcomes:
        assert (outcome["scenario"], outcome["size"]) == ("P1", 10)
        assert outcome["faults"] == []
        assert outcome["framesDecoded"] > 0 and outcome["framesFailed"] == 0
        assert outcome["cpuMicroseconds"] > 0


async def test_the_bench_names_a_scenario_that_it_does_not_have():
    status, output, errors = await finish(await start("sfu-bench", "P99"))
    assert (status, output) == (2, "")
    assert "P99" in errors.splitlines()[0]


@pytest.mark.seconds(120)
async def test_the_packet_path_neither_allocates_nor_retains_nor_locks():
    status, output, errors = await finish(await start("core-cost", "--check"))
    print(output)
    assert status == 0, f"{errors}\n{output}"
