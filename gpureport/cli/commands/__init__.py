"""The commands; their modules (`table.MODULES`) are imported on demand."""
