"""How numbers, units, terms and differences are printed."""
