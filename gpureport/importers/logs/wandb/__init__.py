"""The system metrics of a Weights & Biases run, exported as CSV or as JSON lines."""

from gpureport.importers.logs.wandb.system_metrics import Wandb

__all__ = ["Wandb"]
