import shutil
from base64 import b64encode
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import pytest

from gpureport.cli.main import main
from tests.support import pdf_reading

SAMPLE = str(Path(__file__).parents[2] / "sample_logs/healthy")
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} 24"><rect width="{w}" height="24" fill="#00ff00"/></svg>'
)
BRAND = '[report]\nlogo = "brand/logo.svg"\naccent = "#ff00ff"\nfont = "cmr10.ttf"\nfooter = "Example <b>Ltd</b>"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a logo and a font, in which the program is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brand").mkdir()
    (tmp_path / "brand/logo.svg").write_text(LOGO.format(w=24))
    shutil.copy(Path(mpl.get_data_path()) / "fonts/ttf/cmr10.ttf", tmp_path)
    return tmp_path


def call(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return ended.value.code


@pytest.mark.parametrize("command", ["report", "fleet"])
def test_page_and_pdf_carry_logo_accent_font_and_footer(folder: Path, command: str) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    assert call(command, SAMPLE, "-o", "r.html", "-o", "r.pdf") == 0
    page = (folder / "r.html").read_text()
    assert b64encode(LOGO.format(w=24).encode()).decode() in page
    assert "--link: light-dark(#ff00ff, " in page
    assert "Example &lt;b&gt;Ltd&lt;/b&gt;" in page
    assert pdf_reading.text(folder / "r.pdf", 1).count("Example <b>Ltd</b>") == 1
    assert 150 <= count_pixels(folder / "r.pdf", (0, 255, 0)) <= 260


@pytest.mark.parametrize(("width", "least", "most"), [(96, 700, 1000), (2400, 100, 500)])
def test_a_wide_logo_takes_a_third_of_a_line_at_most(folder: Path, width: int, least: int, most: int) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    (folder / "brand/logo.svg").write_text(LOGO.format(w=width))
    assert call("report", SAMPLE, "-o", "r.pdf") == 0
    assert least <= count_pixels(folder / "r.pdf", (0, 255, 0)) <= most
    assert "UA-1" in pdf_reading.metadata(folder / "r.pdf") or "pdfuaid" in pdf_reading.metadata(folder / "r.pdf")


def test_a_logo_pulls_no_other_file_into_a_pdf(folder: Path) -> None:
    (folder / "gpureport.toml").write_text(BRAND)
    (folder / "secret.svg").write_text(LOGO.format(w=24))
    (folder / "brand/logo.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 24 24">'
        f'<image width="24" height="24" xlink:href="{folder}/secret.svg"/>'
        f'<image width="24" height="24" href="../secret.svg"/></svg>'
    )
    call("report", SAMPLE, "-o", "r.pdf")
    assert not (folder / "r.pdf").exists() or count_pixels(folder / "r.pdf", (0, 255, 0)) == 0


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ('logo = "missing.svg"', "gpureport.toml:2"),
        ('logo = "cmr10.ttf"', "gpureport.toml:2"),
        ('logo = "large.png"', "gpureport.toml:2"),
        ('accent = "red"', "gpureport.toml:2"),
        ("footer = 1", "gpureport.toml:2"),
        ('logos = "brand/logo.svg"', "gpureport.toml:2"),
        ('logo = "broken.svg"', "broken.svg"),
        ('font = "broken.ttf"', "broken.ttf"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], settings: str, place: str
) -> None:
    (folder / "gpureport.toml").write_text(f"[report]\n{settings}\n")
    (folder / "large.png").write_bytes(b" " * (8 * 2**20 + 1))
    (folder / "broken.svg").write_text("<svg broken")
    (folder / "broken.ttf").write_text("no font")
    assert call("report", SAMPLE, "-o", "r.pdf") == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gpureport: ")]
    assert len(errors) == 1
    assert place in errors[0]
    assert not (folder / "r.pdf").exists()


def test_folders_of_templates_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("report", SAMPLE, "-o", "r.html", "--templates", str(folder)) == 2
    assert "[report]" in capsys.readouterr().err


def count_pixels(path: Path, colour: tuple[int, int, int]) -> int:
    """Return how many points of the first page, 72 to an inch, have a colour."""
    points = mpl.image.imread(pdf_reading.draw_first_page(path))[:, :, :3]
    return int((abs(points * 255 - colour).max(axis=2) < 2).sum())
