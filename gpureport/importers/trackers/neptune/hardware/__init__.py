"""Hardware series of Neptune: who recorded them, what their names mean, and their devices."""
