"""Tests the wheel that users get, built from the sdist and installed into an empty environment, and runs the README example."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import run
from tests.foreign.package.environments import installed, unhashed
from tests.testing_page import write_testing_page

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
BROKER = PROJECT_ROOT / "broker"
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a wheel from the contents of the sdist alone."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    run("git", "clone", "--quiet", PROJECT_ROOT, tree, cwd=folder)
    changed = run("git", "ls-files", "--modified", "--others", "--exclude-standard", cwd=PROJECT_ROOT).splitlines()
    for name in changed:
        if (PROJECT_ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((PROJECT_ROOT / name).read_bytes())
    run(sys.executable, "-c", BUILD_SDIST, folder, cwd=tree / "broker")
    (sdist,) = folder.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, "--wheel-dir", folder, sdist, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(wheel, Path(sys.executable), tmp_path_factory.mktemp("environment"))


def example_of_the_readme(folder: Path) -> str:
    example = re.search(r"^```python\n(.*?)^```", (BROKER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None
    (folder / "example.py").write_text(example[1])
    return "example.py"


@pytest.fixture
def namesrv_addr(environment: Path, tmp_path: Path) -> Iterator[str]:
    """Runs a broker with the installed command. Yields its name server's address."""
    namesrv_port, port = free_ports(2)
    settings = {"namesrvListenPort": namesrv_port, "listenPort": port, "storePathRootDir": tmp_path / "store"}
    (tmp_path / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [environment / "rocketmq-broker", "-c", tmp_path / "broker.conf"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        assert "boot success" in broker.stdout.readline()
        yield f"127.0.0.1:{namesrv_port}"
        broker.terminate()
        assert broker.wait(60) == 0


def test_the_wheel_holds_the_broker_alone_and_its_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"rocketmq_broker"}
    assert "rocketmq_broker/py.typed" in names
    source = {path.relative_to(BROKER).as_posix() for path in BROKER.glob("rocketmq_broker/**/*.py")}
    assert source == {name for name in names if name.endswith(".py")}


def test_the_wheel_holds_style_and_script_of_a_simulated_worlds_page(wheel: Path) -> None:
    folder = "rocketmq_broker/testing/simulation/page"
    assert {f"{folder}/page.css", f"{folder}/page.js", f"{folder}/picture.css"} <= set(zipfile.ZipFile(wheel).namelist())


def test_every_module_imports_with_the_dependencies_that_the_wheel_names(environment: Path, tmp_path: Path) -> None:
    program = (
        "import importlib, pkgutil, rocketmq_broker\n"
        "names = [module.name for module in pkgutil.walk_packages(rocketmq_broker.__path__, 'rocketmq_broker.')]\n"
        "names.remove('rocketmq_broker.testing.plugin')  # which pytest loads\n"
        "names.remove('rocketmq_broker.platform.windows')\n"
        "console = 'rocketmq_broker.admin.console.'  # the extra `console`\n"
        "simulation = 'rocketmq_broker.testing.simulation.', 'rocketmq_broker.testing.exploring.'  # the extra `simulation`\n"
        "grpc = 'rocketmq_broker.proxy.', 'rocketmq_broker.app.proxy.'  # the extra `grpc`\n"
        "containers = 'rocketmq_broker.testing.containers.'  # the extra `testcontainers`\n"
        "databases = 'rocketmq_broker.databases.'  # the extras `sqlalchemy` and `django`\n"
        "names = [name for name in names if not (name + '.').startswith((console, containers, databases, *simulation, *grpc))]\n"
        "for name in names: importlib.import_module(name)"
    )
    run(environment / "python", "-c", program, cwd=tmp_path)


def test_without_its_extra_the_console_says_what_to_install(environment: Path, tmp_path: Path) -> None:
    command = [environment / "rocketmq-admin", "console", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "rocketmq-broker[console]" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_its_extra_the_proxy_says_what_to_install(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(f"storePathRootDir={tmp_path}\nlistenPort=0\nnamesrvListenPort=0\ngrpcServerPort=0\n")
    command = [environment / "rocketmq-broker", "-c", "broker.conf"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "rocketmq-broker[grpc]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["simulation.world", "exploring"])
def test_without_its_extra_the_simulated_world_says_what_to_install(environment: Path, tmp_path: Path, module: str) -> None:
    command = [environment / "python", "-c", f"import rocketmq_broker.testing.{module}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "rocketmq-broker[simulation]" in done.stderr.splitlines()[-1]


def test_without_its_extra_the_container_says_what_to_install(environment: Path, tmp_path: Path) -> None:
    command = [environment / "python", "-c", "import rocketmq_broker.testing.containers"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "rocketmq-broker[testcontainers]" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("extra", ["sqlalchemy", "django"])
def test_without_its_extra_the_barrier_says_what_to_install(environment: Path, tmp_path: Path, extra: str) -> None:
    command = [environment / "python", "-c", f"import rocketmq_broker.databases.{extra}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert f"rocketmq-broker[{extra}]" in done.stderr.splitlines()[-1]


def test_with_its_extra_the_console_serves_a_page(wheel: Path, namesrv_addr: str, tmp_path: Path) -> None:
    programs = installed(wheel, Path(sys.executable), tmp_path, extra="console")
    (port,) = free_ports(1)
    command = [programs / "rocketmq-admin", "console", "--listen", f"127.0.0.1:{port}", "-n", namesrv_addr]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as console:
        try:
            answer = httpx.Client(transport=httpx.HTTPTransport(retries=9)).get(f"http://127.0.0.1:{port}/", timeout=30)
            assert (answer.status_code, "Overview" in answer.text) == (200, True)
        finally:
            console.terminate()


def test_the_commands_say_what_they_are(environment: Path, tmp_path: Path) -> None:
    assert re.match(r"rocketmq-broker \d+\.\d+\.\d+, ", run(environment / "rocketmq-broker", "--version", cwd=tmp_path))
    assert "usage: rocketmq-namesrv" in run(environment / "rocketmq-namesrv", "--help", cwd=tmp_path)
    assert "Usage: rocketmq-admin" in run(environment / "rocketmq-admin", "--help", cwd=tmp_path)


def test_the_example_of_the_readme_runs(environment: Path, namesrv_addr: str, tmp_path: Path) -> None:
    printed = run(environment / "python", example_of_the_readme(tmp_path), cwd=tmp_path, NAMESRV_ADDR=namesrv_addr)
    assert printed == "sent: SEND_OK\nreceived 'hello' from greetings\n"


def test_pytest_finds_the_fixture_that_the_wheel_brings(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    run(sys.executable, "-m", "venv", folder, cwd=tmp_path)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = unhashed(PROJECT_ROOT / "requirements.lock", tmp_path)
    run(*pip, "--constraint", constraints, f"{wheel}[simulation]", "pytest", "pytest-asyncio", cwd=tmp_path)
    count = write_testing_page(tmp_path)
    printed = run(folder / "bin" / "pytest", "-o", "asyncio_mode=auto", cwd=tmp_path)
    assert f"{count} passed" in printed
