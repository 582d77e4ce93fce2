"""One file of a recorded session: `sfuctl compose` on directories that ffmpeg made."""

import asyncio
import json
import re
import signal

import pytest

from harness import footage
from harness.footage import RATE, SAMPLES, Film, Session

RED, GREEN, BLUE = (254, 0, 0), (0, 128, 0), (0, 0, 254)
YELLOW, MAGENTA, CARD = (255, 255, 0), (255, 0, 255), (38, 40, 44)
BLACK = (0, 0, 0)
ALICE = 'Alice: "it\'s" 100 %{n} \\ Zoë Жук'


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Makes twenty seconds of people who join, leave, mute and share, and of broken files."""
    one = Session(tmp_path_factory.mktemp("session"), 20)
    one.event(1, "joined", participant="alice", name=ALICE)
    one.picture("alice", ALICE, "red", 1, 18, gaps=[(8, 12)])
    one.tone("alice", ALICE, 440, 1, 18)

    one.event(4, "joined", participant="bob", name="Bob")
    _growing(one)
    one.tone("bob", "Bob", 880, 4.2, 10.2, gaps=[(6, 9)])
    one.event(14.4, "left", participant="bob")

    one.event(10, "joined", participant="carol", name="Carol")
    one.picture("carol", "Carol", "green", 10.3, 9, codec="libx264", path="carol.mkv")
    one.tone("carol", "Carol", 1320, 10.1, 9.2)
    one.picture(
        "carol", "Carol", "yellow", 13, 4, source="screen", path="screen.webm", stream="str-share"
    )
    one.event(19.3, "left", participant="carol")

    # Truncated by a crash: it can be read up to some second.
    torn = one.picture(
        "dave", "Dave", "testsrc2=s=320x180:r=30", 2, 10, complete=False, duration=None
    )
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size * 6 // 10])
    garbage = one.file("garbage.webm", "eve", "Eve", "video", 1, 10)
    garbage.write_bytes(bytes(range(256)) * 100)
    one.file("missing.webm", "eve", "Eve", "audio", 1, 10)

    one.event(5, "talkers", talkers=["alice"])
    one.event(7, "talkers", talkers=["bob", "alice"])
    one.event(12.5, "talkers", talkers=["carol", "bob"])
    return one.write()


def _growing(one: Session) -> None:
    """Makes Bob's camera, whose pictures become larger after five seconds."""
    small, large = one.directory / "small.webm", one.directory / "large.webm"
    for path, size in ((small, "160x90"), (large, "320x180")):
        footage.ffmpeg(
            "-f", "lavfi", "-i", f"color=c=blue:s={size}:r={RATE}:d=5",
            *footage.encoder("libvpx"), path,
        )  # fmt: skip
    both = one.directory / "both.txt"
    both.write_text("file small.webm\nfile large.webm\n")
    footage.ffmpeg("-f", "concat", "-i", both, "-c", "copy", one.directory / "bob.webm")
    one.file("bob.webm", "bob", "Bob", "video", 4.4, 10)
    one.event(9.4, "size", stream="str-bob", width=320, height=180)


@pytest.fixture(scope="module")
def grid(loop, session):
    """Returns the session as a grid: the film, and the command's output."""
    output = session.directory / "grid.mp4"
    status, _, errors = loop.run_until_complete(
        footage.compose(session.directory, "-o", output, "--size", "640x360")
    )
    assert status == 0, errors
    film = Film(output)
    film.errors = errors
    return film


@pytest.fixture(scope="module")
def plan(loop, session):
    """Returns `plan(layout)`, the plan of `--dry-run`."""

    def of(layout):
        status, output, errors = loop.run_until_complete(
            footage.compose(
                session.directory, "--dry-run", "--json", "--size", "640x360", "--layout", layout
            )
        )
        assert status == 0, errors
        return json.loads(output)

    return of


def tiles(plan: dict, time: float) -> dict:
    """Returns the position of each name's picture at that time."""
    for segment in plan["segments"]:
        if segment["start"] <= time < segment["end"]:
            return {tile["name"]: tile["picture"] for tile in segment["tiles"]}
    raise AssertionError(f"nothing is planned at {time} s")


def alike(one, other, tolerance=24) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(one, other, strict=True))


@pytest.mark.slow
@pytest.mark.seconds(300)
def test_the_film_is_whole_and_even(grid):
    streams = grid.streams()
    video, audio = streams["video"], streams["audio"]
    assert (video["codec_name"], audio["codec_name"]) == ("h264", "aac")
    assert (video["width"], video["height"]) == (640, 360)
    assert int(video["nb_read_frames"]) == 20 * RATE
    assert abs(float(audio["duration"]) - 20) < 0.03
    assert [round(time * RATE) for time in grid.times()] == list(range(20 * RATE))
    assert abs(len(grid.sound()) - 20 * SAMPLES) <= 1024


@pytest.mark.slow
@pytest.mark.seconds(300)
def test_each_is_seen_in_its_tile_while_it_is_there(grid, plan):
    planned = plan("grid")
    seen = [
        (3, {ALICE: RED}), (5.5, {ALICE: RED, "Bob": BLUE}), (9.5, {"Bob": BLUE}),
        (10.8, {"Bob": BLUE, "Carol": GREEN}), (11.5, {"Bob": BLUE, "Carol": GREEN}),
        (12.3, {ALICE: RED, "Bob": BLUE}),
        (14, {ALICE: RED, "Bob": BLUE, "Carol": GREEN, "Carol (screen)": YELLOW}),
        (16.8, {ALICE: RED, "Carol": GREEN, "Carol (screen)": YELLOW}),
        (18.5, {ALICE: RED, "Carol": GREEN}),
    ]  # fmt: skip
    for time, expected in seen:
        at = tiles(planned, time)
        for name, colour in expected.items():
            assert alike(grid.colour(time, at[name]), colour), f"{name} at {time} s"
    assert "Bob" not in tiles(planned, 15) and "Carol" not in tiles(planned, 9)
    # Muted: a dark tile with the name in it.
    at = tiles(planned, 9.5)
    assert alike(grid.colour(9.5, {**at[ALICE], "height": at[ALICE]["height"] // 2}), CARD, 8)
    assert grid.brightest(9.5, at[ALICE]) > 180
    whole = {"x": 0, "y": 0, "width": 640, "height": 360}
    assert alike(grid.colour(0.2, whole, share=1), BLACK)


@pytest.mark.slow
@pytest.mark.seconds(300)
def test_each_is_heard_when_it_spoke(grid):
    heard = {
        440: [(1, 19)], 880: [(4.2, 6), (9, 14.4)], 1320: [(10.1, 19.3)],
    }  # fmt: skip
    for hertz, spans in heard.items():
        loud = grid.tone(sum(spans[-1]) / 2, hertz)
        assert loud > 0.05
        for begin, end in spans:
            # A tone begins and ends within 40 ms.
            assert grid.tone(begin - 0.06, hertz, 0.04) < loud / 10
            assert grid.tone(begin + 0.06, hertz, 0.04) > loud / 2
            assert grid.tone(end - 0.06, hertz, 0.04) > loud / 2
            assert grid.tone(end + 0.06, hertz, 0.04) < loud / 10
    assert max(grid.sound()[: int(0.9 * SAMPLES)]) < 100


@pytest.mark.slow
@pytest.mark.seconds(300)
def test_what_is_broken_is_named_and_the_rest_composed(grid, plan):
    lines = [line for line in grid.errors.splitlines() if line.startswith("sfuctl:")]
    assert len(lines) == 3
    torn, garbage, missing = lines
    held = re.search(r"dave-camera.webm: it was not finished, and holds ([0-9.]+) s", torn)
    assert 3 < float(held[1]) < 9
    assert "garbage.webm is left out: it cannot be decoded" in garbage
    assert "missing.webm is left out: it is missing" in missing
    planned = plan("grid")
    assert "Dave" in tiles(planned, 4) and "Dave" not in tiles(planned, 13)
    assert not alike(grid.colour(4, tiles(planned, 4)["Dave"], share=1), CARD)
    assert not any("Eve" in tiles(planned, second) for second in range(20))


@pytest.mark.slow
@pytest.mark.seconds(300)
async def test_on_the_stage_the_screen_is_large(session, tmp_path):
    status, output, _ = await footage.compose(
        session.directory, "--dry-run", "--json", "--size", "640x360", "--layout", "stage"
    )
    assert status == 0
    planned = json.loads(output)
    status, _, errors = await footage.compose(
        session.directory, "-o", tmp_path / "stage.mp4", "--size", "640x360", "--layout", "stage"
    )
    assert status == 0, errors
    film = Film(tmp_path / "stage.mp4")
    for time, name, colour in (
        (5.8, ALICE, RED), (7.6, "Bob", BLUE), (14, "Carol (screen)", YELLOW),
        (18.5, "Carol", GREEN),
    ):  # fmt: skip
        at = tiles(planned, time)
        assert max(at, key=lambda one: at[one]["width"] * at[one]["height"]) == name
        assert alike(film.colour(time, at[name]), colour), f"{name} at {time} s"


@pytest.mark.slow
@pytest.mark.seconds(300)
async def test_interrupted_it_goes_on_where_it_was(session, grid, tmp_path):
    # The same command, to another file.
    arguments = (session.directory, "-o", tmp_path / "again.mp4", "--size", "640x360")
    for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        child = await footage.start(*arguments)
        done = finished(session)
        while len(finished(session)) < len(done) + 2:
            assert child.returncode is None
            await asyncio.sleep(0.05)
        child.send_signal(number)
        _, errors = await child.communicate()
        assert child.returncode == status
        if number == signal.SIGINT:
            assert "goes on from here" in errors.decode()
    assert not (tmp_path / "again.mp4").exists()
    kept = {path: path.stat().st_mtime_ns for path in finished(session)}
    child = await footage.start(*arguments)
    first = b""
    while not first.strip().endswith(b"%"):
        first = await child.stderr.readline()
        assert first
    assert int(first.split()[0]) > 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    _, errors = await child.communicate()
    assert child.returncode == 0, errors
    assert Film(tmp_path / "again.mp4").pictures() == grid.pictures()
    assert not session.working() and sorted(tmp_path.iterdir()) == [tmp_path / "again.mp4"]


def finished(session: Session) -> set:
    return {
        path
        for directory in session.working()
        for pattern in ("reel-*", "part-*", "sound-*")
        for path in directory.glob(pattern)
    }


@pytest.mark.slow
@pytest.mark.seconds(300)
async def test_lips_stay_with_the_voice(tmp_path):
    """Checks a flash and a beep at the same moments, in files that begin at different ones."""
    seconds = 40
    one = Session(tmp_path, seconds)
    begins = {"video": 0.217, "audio": 0.634}
    flash = f"color=c=black:s=160x90:r=25:d={seconds - 1},drawbox=c=white:t=fill"
    footage.ffmpeg(
        "-f", "lavfi", "-i", flash + f":enable='lt(mod(t+{begins['video']},2),0.2)'",
        *footage.encoder("libvpx"), one.file("v.webm", "a", "A", "video", 0.217, seconds - 1),
    )  # fmt: skip
    # A second without samples in the middle, so that timestamps count and not the samples.
    beep = f"volume='lt(mod(t+{begins['audio']},2),0.2)':eval=frame,aselect='not(between(t,20,21))'"
    footage.ffmpeg(
        "-f", "lavfi", "-i", f"sine=f=1000:r=48000:d={seconds - 1}:samples_per_frame=240",
        "-af", beep, "-c:a", "libopus",
        one.file("a.webm", "a", "A", "audio", 0.634, seconds - 1),
    )  # fmt: skip
    one.write()
    status, _, errors = await footage.compose(
        tmp_path, "-o", tmp_path / "sync.mp4", "--size", "320x180"
    )
    assert status == 0, errors
    film = Film(tmp_path / "sync.mp4")
    light = film.brightness()
    half = max(light) / 2
    flashes = [
        index / RATE for index in range(1, len(light)) if light[index - 1] < half <= light[index]
    ]
    sound, step = film.sound(), SAMPLES // 1000
    loud = [max(sound[first : first + step]) for first in range(0, len(sound), step)]
    level = max(loud) / 4
    beeps = [
        index / 1000
        for index in range(100, len(loud))
        if loud[index] > level and max(loud[index - 100 : index]) <= level
    ]
    assert len(flashes) >= seconds // 2 - 2 and len(beeps) >= seconds // 2 - 3
    for beep in beeps:
        assert min(abs(beep - flash) for flash in flashes) <= 0.04, f"at {beep} s"


async def test_what_cannot_be_composed_is_one_line(tmp_path):
    status, output, errors = await footage.compose(tmp_path, "-o", tmp_path / "x.mp4")
    assert (status, output) == (1, "")
    assert len(errors.splitlines()) == 1 and "session.json" in errors
    Session(tmp_path, 1).write()
    status, output, errors = await footage.compose(tmp_path, "-o", tmp_path / "x.mp4")
    assert (status, output) == (1, "")
    assert errors.splitlines() == ["sfuctl: there is nothing to compose: no file can be used"]
    status, _, errors = await footage.compose(tmp_path)
    assert status == 2 and "-o FILE" in errors
