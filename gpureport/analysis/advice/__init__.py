"""Advice: a catalogue of steps, the choice of steps, and the checklist of good practice."""
