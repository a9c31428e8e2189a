"""Text for terminals and pipes, and Markdown."""
