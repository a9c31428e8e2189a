"""Advice: a catalogue of steps, which of them fit a finding, and the checklist of the practice."""
