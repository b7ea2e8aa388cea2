"""Programs outside this repository use the files that `cmake --install` puts in place."""

import csv
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT

BUILD = ROOT / "build" / "release"
COMPILERS = [compiler for compiler in ("g++", "clang++") if shutil.which(compiler)]
# All packages that some component needs. The replay memory must do without each of them.
PACKAGES = ("nlohmann_json", "fmt", "ZLIB", "CLI11", "PkgConfig", "GTest", "CUDAToolkit")
WITHOUT_PACKAGES = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in PACKAGES]


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def configure(source, build, *settings):
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *settings)


def compile_commands(build):
    return [entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())]


def project(folder, cmake, **sources):
    """A CMake project outside the repository; `sources` maps the stem of a file to its text."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(user CXX)\n" + cmake)
    for name, text in sources.items():
        (folder / f"{name}.cc").write_text(text)
    return folder


def public_headers():
    """(component, header), from the list that users are given."""
    component = None
    for line in (ROOT / "cmake" / "public_headers.txt").read_text().splitlines():
        if line.startswith("["):
            component = line.strip("[]")
        elif line.startswith("uper/"):
            yield component, line


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def test_only_what_is_public_is_installed(prefix):
    files = [path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()]
    assert "bin/uper" in files
    assert "include/uper/replay/transition_replay.h" in files
    headers = [name for name in files if name.startswith("include/")]
    assert [name for name in headers if "for_tests" in name or "/cuda/" in name or "experiments" in name] == []
    assert [name for name in headers if "/cli/" in name] == ["include/uper/cli/main.h"]


def test_the_version_is_the_same_everywhere(prefix):
    version = re.search(r"project\(uper VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert run(prefix / "bin" / "uper", "--version").startswith(f"uper {version} ")
    pc = next(prefix.rglob("uper-replay.pc"))
    assert f"Version: {version}\n" in pc.read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("what", ["0.1 REQUIRED COMPONENTS replay", "0.3 REQUIRED COMPONENTS replay",
                                  "REQUIRED COMPONENTS chess"])
def test_other_versions_and_components_are_not_found(prefix, tmp_path, what):
    source = project(tmp_path / "user", f"find_package(uper {what})\n")
    result = subprocess.run(["cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
                            capture_output=True, text=True)
    assert result.returncode != 0
    assert "uper" in result.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_own_loop_needs_the_compiler_alone(prefix, tmp_path, compiler):
    configure(ROOT / "examples" / "own_loop", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}",
              f"-DCMAKE_CXX_COMPILER={compiler}", *WITHOUT_PACKAGES)
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "own_loop").startswith("1000 transitions")
    for command in compile_commands(tmp_path):
        assert not re.search(r"\s-W", command), "our warnings reach users"
        assert re.search(r"-std=(gnu|c)\+\+20", command)
        assert "-ffp-contract=off" in command
        assert str(ROOT / "src") not in command


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_replay_memory_alone_is_built_into_a_shared_library(tmp_path, compiler):
    source = project(
        tmp_path / "user",
        f"set(UPER_COMPONENTS replay)\nset(CMAKE_POSITION_INDEPENDENT_CODE ON)\nadd_subdirectory({ROOT} uper)\n"
        "add_library(plugin SHARED plugin.cc)\ntarget_link_libraries(plugin PRIVATE uper::replay)\n",
        plugin='#include "uper/replay/shared_replay.h"\nstd::size_t Use(uper::WholeReplay& r) { return r.size(); }\n')
    configure(source, tmp_path / "build", f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_CXX_FLAGS=-O0",
              *WITHOUT_PACKAGES)
    run("cmake", "--build", tmp_path / "build", "-j2")
    assert (tmp_path / "build" / "libplugin.so").exists()
    user = [command for command in compile_commands(tmp_path / "build") if "plugin.cc" in command]
    assert not re.search(r"\s-W", user[0])


USES = {
    "envs": ('#include "uper/envs/registry.h"\n',
             'uper::MakeEnvironment("minatar/breakout", {}, 1, 0)->spec().actions == 6'),
    "stats": ('#include "uper/stats/reference_scores.h"\n#include "uper/stats/smoothing.h"\n', "true"),
    "nn": ('#include "uper/nn/make_cpu_learner.h"\n',
           "[] { uper::ThreadPool pool(1); auto learner = uper::MakeCpuLearner({.network = uper::MlpNetwork(4, {8}, "
           "{.actions = 2}), .batch = 4}, pool); return learner->spec().batch == 4; }()"),
    "train": ('#include "uper/train/config/resolve_config.h"\n#include "uper/train/run/run_setup.h"\n',
              "[] { auto config = uper::ResolveConfig({.settings = {\"agent.name=dqn\"}}); "
              "uper::FillAutomaticKeys(config, 1); uper::ThreadPool pool(1); "
              "return uper::MakeTrainerParts(config, pool).engine != nullptr; }()"),
}


def test_each_component_links_with_its_own_packages_alone(prefix, tmp_path):
    sources = {name: f"{include}int main() {{ return ({use}) ? 0 : 1; }}\n" for name, (include, use) in USES.items()}
    cmake = "".join(f"find_package(uper REQUIRED COMPONENTS {name})\nadd_executable({name} {name}.cc)\n"
                    f"target_link_libraries({name} PRIVATE uper::{name})\n" for name in USES)
    configure(project(tmp_path / "user", cmake, **sources), tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
              "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON")
    run("cmake", "--build", tmp_path / "build", "-j2")
    for name in USES:
        run(tmp_path / "build" / name)


@pytest.mark.parametrize("component", ["replay", "train"])
def test_pkg_config_names_what_a_program_needs(prefix, tmp_path, component):
    include, use = USES.get(component, ('#include "uper/replay/transition_replay.h"\n',
                                        "uper::WholeObservations(10, 4).capacity() == 10"))
    (tmp_path / "main.cc").write_text(f"{include}int main() {{ return ({use}) ? 0 : 1; }}\n")
    folder = next(prefix.rglob("uper-replay.pc")).parent
    paths = os.pathsep.join([str(folder), os.environ.get("PKG_CONFIG_PATH", "")])
    flags = run("pkg-config", "--cflags", "--libs", f"uper-{component}",
                env={**os.environ, "PKG_CONFIG_PATH": paths}).split()
    run("g++", "-std=c++20", tmp_path / "main.cc", *flags, "-o", tmp_path / "main")
    run(tmp_path / "main")


def test_each_public_header_compiles_alone(prefix):
    headers = list(public_headers())
    assert len(headers) > 40

    def problems(row):
        component, header = row
        result = subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++",
                                 f"-I{prefix / 'include'}", "-"], input=f'#include "{header}"\n', text=True,
                                capture_output=True)
        return f"{component} {header}: {result.stderr}" if result.returncode else None

    with ThreadPoolExecutor(2) as pool:
        assert [problem for problem in pool.map(problems, headers) if problem] == []


@pytest.fixture(scope="module")
def own_environment(prefix, tmp_path_factory):
    build = tmp_path_factory.mktemp("own_environment")
    configure(ROOT / "examples" / "own_environment", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build / "own_environment"


def test_every_command_knows_an_environment_of_ones_own(own_environment, tmp_path):
    assert "cart_pole" in run(own_environment, "list", "envs").split()
    rollout = json.loads(run(own_environment, "rollout", "--env", "cart_pole", "--policy", "random", "--json"))
    assert rollout["episodes"] == 100
    wrong = subprocess.run([own_environment, "train", "--env", "cart_pol"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "did you mean 'cart_pole'?" in wrong.stderr


def test_every_command_knows_a_priority_of_ones_own(own_environment, tmp_path):
    assert "root_td" in run(own_environment, "list", "priorities").split()
    train = [own_environment, "train", "--env", "cart_pole", "--agent", "per", "--frames", "3000", "--no-plots",
             "--set", "evaluate_every_frames=3000", "--set", "evaluation_episodes=1"]
    means = {}
    for rule in ("td", "root_td"):
        run(*train, "--set", f"agent.priority={rule}", "--out", tmp_path / rule)
        with open(tmp_path / rule / "metrics.csv") as file:
            means[rule] = [float(row["priority_mean"]) for row in csv.DictReader(file) if row["priority_mean"]]
    assert means["root_td"] and means["root_td"] != means["td"]
    on_gpu = subprocess.run([*train, "--set", "agent.priority=root_td", "--device", "cuda", "--out", tmp_path / "gpu"],
                            capture_output=True, text=True)
    assert on_gpu.returncode in (2, 4)
    assert "root_td" in on_gpu.stderr or "GPU" in on_gpu.stderr


def test_cart_pole_is_solved(own_environment, tmp_path):
    folder = tmp_path / "run"
    result = subprocess.run([own_environment, "train", "--env", "cart_pole", "--agent", "dqn", "--seed", "1",
                             "--no-plots", "--out", folder], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    played = json.loads(run(own_environment, "evaluate", folder, "--episodes", "20", "--json"))
    assert played["mean_return"] >= 475
