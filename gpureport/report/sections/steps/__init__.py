"""Steps of an optimization and groups side by side: headline, tables, charts, gains, effects, each against another.

What is said stands in `wording/words.toml`, how a figure is printed in `figures.py`; `builder.py` puts all together.
"""
