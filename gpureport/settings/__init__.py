"""`gpureport.toml`, and the other files of TOML that people write.

Here live the reader of TOML, which refuses what no type holds, the sections of the settings, and what `[secrets]` adds
to the list of secrets. Each rule, policy and price list validates its own section, where it is used; a new section is a
line of `SECTIONS`.
"""

from gpureport.settings.settings_file import Section, Settings, check_sections, read_settings, read_unchecked

__all__ = ["Section", "Settings", "check_sections", "read_settings", "read_unchecked"]
