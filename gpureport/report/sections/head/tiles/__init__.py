"""The four tiles of the first screen: of steps, of one run, and of the finding in its headline."""
