"""Night after night: baselines, the history of figures, changes of level, and a site of static pages."""
