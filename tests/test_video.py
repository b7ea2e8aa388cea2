"""`uper evaluate --video`: the film decodes and shows the game, results stay the same, errors are clear."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import PROGRAM
from PIL import Image

SIZE = (1280, 720)
SMALL = {"replay.minimum_transitions": 100, "replay.batch_size": 8, "replay.capacity_transitions": 500,
         "evaluate_every_frames": 0, "network.hidden_units": 16}


def train(folder, agent, env="minatar/breakout", frames=300, **settings):
    words = [PROGRAM, "train", "--agent", agent, "--env", env, "--frames", frames, "--out", folder, "--no-plots"]
    for key, value in {**SMALL, **settings}.items():
        words += ["--set", f"{key}={value}"]
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("video") / "run", "qr-ens-uper",
                 **{"network.members": 3, "network.quantiles": 5})


def pictures(path):
    """Every picture of an animated PNG, as RGB."""
    with Image.open(path) as film:
        for index in range(film.n_frames):
            film.seek(index)
            yield film.convert("RGB"), film.info["duration"]


def test_animated_png_shows_each_step(uper, run, tmp_path):
    film = tmp_path / "film.png"
    result = uper("evaluate", run, "--video", film, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["episodes"] == 1 and report["video"] == str(film)
    assert os.listdir(tmp_path) == ["film.png"]
    shown = list(pictures(film))
    assert len(shown) == report["frames"] + 1  # one picture per decision, and one of the last state
    for picture, duration in shown:
        assert picture.size == SIZE and duration == 100
        assert picture.getpixel((2, 2)) == (255, 255, 255)
        # A cell of the game has 60 pixels; the paddle is blue, in the last row, one cell wide.
        last_row = [picture.getpixel((30 + 60 * cell + 30, 72 + 60 * 9 + 30)) for cell in range(10)]
        assert last_row.count((0x1F, 0x77, 0xB4)) == 1
    bricks = [picture.getpixel((60, 72 + 60 * 2 + 30)) for picture, _ in shown]
    assert (0xD6, 0x27, 0x28) in bricks
    assert shown[0][0].tobytes() != shown[-1][0].tobytes()


def test_a_film_changes_no_result(uper, run, tmp_path):
    plain = json.loads(uper("evaluate", run, "--episodes", 3, "--json").stdout)
    filmed = json.loads(uper("evaluate", run, "--episodes", 3, "--json", "--video", tmp_path / "a.png").stdout)
    filmed.pop("video")
    assert filmed == plain
    assert sum(1 for _ in pictures(tmp_path / "a.png")) == plain["frames"] + 3


def test_frames_bound_the_film(uper, run, tmp_path):
    result = uper("evaluate", run, "--episodes", 50, "--frames", 12, "--video", tmp_path / "a.png")
    assert result.returncode == 0 and "--frames" in result.stderr
    assert sum(1 for _ in pictures(tmp_path / "a.png")) >= 12


@pytest.mark.parametrize("agent, env", [("dqn", "minatar/asterix"), ("qr-dqn", "grid/noisy"),
                                        ("c51-ens-uper", "noisy-minatar/breakout"), ("qr-ens-uper", "bandit/conal")])
def test_every_kind_of_agent_can_be_filmed(uper, tmp_path, agent, env):
    folder = train(tmp_path / "run", agent, env)
    result = uper("evaluate", folder, "--frames", 15, "--video", tmp_path / "film.png")
    assert result.returncode == 0, result.stderr
    assert all(picture.size == SIZE for picture, _ in pictures(tmp_path / "film.png"))


def test_atari_is_shown_in_color(uper, tmp_path):
    folder = train(tmp_path / "run", "qr-ens-uper", "atari/pong", frames=800,
                   **{"network.members": 2, "network.quantiles": 4})
    result = uper("evaluate", folder, "--frames", 40, "--video", tmp_path / "film.png")
    assert result.returncode == 0, result.stderr
    shown = [picture for picture, _ in pictures(tmp_path / "film.png")]
    assert len(shown) == 10
    assert shown[-1].getpixel((330, 400)) == (144, 72, 17)  # the field of Pong


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg: apt-get install ffmpeg")
def test_mp4_by_ffmpeg(uper, run, tmp_path):
    film = tmp_path / "film.mp4"
    report = json.loads(uper("evaluate", run, "--video", film, "--json").stdout)
    assert os.listdir(tmp_path) == ["film.mp4"]
    probe = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries",
                            "stream=codec_name,width,height,nb_read_frames,avg_frame_rate", "-of", "json", film],
                           capture_output=True, text=True, check=True)
    stream, = json.loads(probe.stdout)["streams"]
    assert (stream["codec_name"], stream["width"], stream["height"]) == ("h264", *SIZE)
    assert int(stream["nb_read_frames"]) == report["frames"] + 1 and stream["avg_frame_rate"] == "10/1"


def test_without_ffmpeg_it_is_an_animated_png(uper, run, tmp_path):
    result = uper("evaluate", run, "--frames", 5, "--video", tmp_path / "film.mp4", "--json", env={"PATH": "/nowhere"})
    assert result.returncode == 0 and "apt-get install ffmpeg" in result.stderr
    assert json.loads(result.stdout)["video"] == str(tmp_path / "film.png")
    assert os.listdir(tmp_path) == ["film.png"] and len(list(pictures(tmp_path / "film.png"))) == 5


def test_bad_films_are_refused_and_leave_nothing(uper, run, tmp_path):
    (tmp_path / "folder.png").mkdir()
    before = sorted(os.listdir(tmp_path))
    for name, word in [("film.avi", ".mp4"), ("film", ".png"), ("nowhere/film.png", "nowhere"),
                       ("nowhere/film.mp4", "nowhere"), ("folder.png", "folder")]:
        result = uper("evaluate", run, "--video", tmp_path / name)
        assert result.returncode == 2 and word in result.stderr, (name, result.stderr)
    full = uper("evaluate", run, "--video", "/dev/full/film.png")
    assert full.returncode == 2
    assert uper("evaluate", tmp_path / "none", "--video", tmp_path / "film.png").returncode == 3
    assert sorted(os.listdir(tmp_path)) == before


def test_a_full_disk_leaves_nothing(run, tmp_path):
    command = f"ulimit -f 20; exec {PROGRAM} evaluate {run} --frames 50 --video {tmp_path}/film.png"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.returncode == 4 and "film.png" in result.stderr
    assert os.listdir(tmp_path) == []
