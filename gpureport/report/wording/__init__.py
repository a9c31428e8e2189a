"""How numbers, units, terms and differences are written; sentences of one section stay with it."""
