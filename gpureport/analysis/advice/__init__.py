"""Advice: a catalogue of steps, the choice of steps for a finding, and the checklist of good practice."""
