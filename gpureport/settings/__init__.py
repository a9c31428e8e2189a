"""Reads `gpureport.toml` and other TOML files that people write.

`toml_files` refuses values that no type can hold. `settings_file` has the sections, and reads `[secrets]`. Each rule,
policy and price list validates its own section where it is used; a new section is an entry in `SECTIONS`.
"""

from gpureport.settings.settings_file import Section, Settings, check_sections, read_settings, read_unchecked

__all__ = ["Section", "Settings", "check_sections", "read_settings", "read_unchecked"]
