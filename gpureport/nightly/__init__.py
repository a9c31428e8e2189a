"""Night after night: limits and baselines, the history of figures, and a site of static pages."""
