"""The samples of a device with the time that each covers, and figures computed from them."""
