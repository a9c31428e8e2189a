"""The wheel carries what it needs and works away from the checkout."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from gpureport import __version__

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]


def shipped(folder: str) -> set[str]:
    paths = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source archive and the wheel."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone into a new environment that borrows the other packages; return its Python."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    site = next(home.glob("lib/python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    install = [
        *pip,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--force-reinstall",
        str(next(built.glob("*.whl"))),
    ]
    subprocess.run(install, check=True)
    return python


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=apart, capture_output=True, text=True, check=False)


@pytest.mark.smoke
def test_wheel_holds_modules_templates_and_samples_and_nothing_else(built: Path) -> None:
    inside = set(zipfile.ZipFile(next(built.glob("*.whl"))).namelist())
    metadata = f"gpureport-{__version__}.dist-info"
    carried = {f"gpureport/{name}" for name in shipped("templates") | shipped("sample_logs")}
    assert carried | shipped("gpureport") | {"gpureport/py.typed", f"{metadata}/licenses/LICENSE"} <= inside
    assert {name.split("/")[0] for name in inside} == {"gpureport", metadata}


@pytest.mark.smoke
def test_source_archive_can_be_tested(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"README.md", "LICENSE", "pyproject.toml"}
    for folder in ("gpureport", "templates", "sample_logs", "tests", "docs", ".ci", ".github"):
        expected |= shipped(folder)
    assert expected <= inside


def test_an_installed_wheel_tells_its_version_and_runs_the_demo(installed: Path, tmp_path: Path) -> None:
    version = run(tmp_path, str(installed.with_name("gpureport")), "--version")
    where = run(tmp_path, str(installed), "-c", "import gpureport; print(gpureport.__file__)")
    assert __version__ in version.stdout, version.stderr
    assert Path(where.stdout.strip()).is_relative_to(installed.parents[1])
    done = run(tmp_path, str(installed.with_name("gpureport")), "demo", "-o", "report.html")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
