"""The samples of a device, the time that each covers, and values computed from them."""
