"""GPUs that report to be busy and draw hardly more power than at rest: the kind `hollow_util`."""
