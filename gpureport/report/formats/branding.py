"""Logo, accent colour, font and footer of pages and PDFs, from `[report]` in `gpureport.toml`."""

import re
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from gpureport.errors import SettingsError
from gpureport.report.charts import palette
from gpureport.settings import Section, Settings

_LARGEST = 8 * 2**20  # bytes; reports embed logo and font
_LOGOS = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
_FONTS = (".ttf", ".otf", ".ttc")
_ACCENT = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brand:
    """The look of pages and PDFs. The font is for characters that the DejaVu fonts lack."""

    logo: Path | None = None
    accent: str = ""
    font: Path | None = None
    footer: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.logo, self.font) if path)

    @property
    def colours(self) -> dict[str, str]:
        if not self.accent:
            return palette.SHARED
        parts = (int(self.accent[at : at + 2], 16) for at in (1, 3, 5))
        light = "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)
        return palette.SHARED | {"accent": self.accent, "accent_dark": light}

    @property
    def logo_url(self) -> str:
        if self.logo is None:
            return ""
        return f"data:image/{_LOGOS[self.logo.suffix.lower()]};base64,{b64encode(self.logo.read_bytes()).decode()}"

    @property
    def logo_adapts(self) -> bool:
        return self.logo is not None and b"prefers-color-scheme" in self.logo.read_bytes()


PLAIN = Brand()  # the look of gpureport itself


def read_brand(settings: Settings) -> Brand:
    """Return the settings in `[report]`. Paths are relative to the settings file's folder."""
    section = settings.section("report")
    section.only({"logo", "accent", "font", "footer"})
    accent = section.text("accent")
    if accent and not _ACCENT.fullmatch(accent):
        what, hint = f"accent must be a hex colour, not {accent!r}", 'write it like "#5b2a86"'
        raise SettingsError(section.at("accent"), what, hint, code="not_a_colour")
    return Brand(
        logo=_find_file(section, "logo", tuple(_LOGOS)),
        accent=accent,
        font=_find_file(section, "font", _FONTS),
        footer=section.text("footer"),
    )


def _find_file(section: Section, key: str, suffixes: tuple[str, ...]) -> Path | None:
    name = section.text(key)
    if not name:
        return None
    path = Path(section.file).parent / name
    if path.suffix.lower() not in suffixes:
        what = f"{key} {name!r} has none of the extensions {', '.join(suffixes)}"
        raise SettingsError(section.at(key), what, "convert the file", code="unknown_file_type")
    if not path.is_file():
        raise SettingsError(section.at(key), f"{key} {str(path)!r} not found", "correct the path", code="no_such_file")
    if path.stat().st_size > _LARGEST:
        what = f"{str(path)!r} is larger than {_LARGEST >> 20} MiB"
        raise SettingsError(section.at(key), what, f"use a smaller {key}", code="file_too_large")
    return path
