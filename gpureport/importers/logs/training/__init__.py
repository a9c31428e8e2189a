"""What a training loop wrote of its metrics, beside the log of the GPUs: one long table of time, step, name, value."""

from gpureport.importers.logs.training.training_log import WANTED, Training, TrainingLog

__all__ = ["WANTED", "Training", "TrainingLog"]
