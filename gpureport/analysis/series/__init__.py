"""The samples of a device with the time that each covers, and what is computed from them."""
