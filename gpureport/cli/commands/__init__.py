"""The commands, in modules that are loaded when one of theirs is called; `table.MODULES` names them."""
