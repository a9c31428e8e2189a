"""Gates of nightly runs: limits a person sets, held against runs and their baseline, and what machines are told."""
