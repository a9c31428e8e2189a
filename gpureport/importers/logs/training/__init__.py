"""Metrics that a training loop logged: one long table of time, step, name, value."""

from gpureport.importers.logs.training.training_log import WANTED, Training, TrainingLog

__all__ = ["WANTED", "Training", "TrainingLog"]
