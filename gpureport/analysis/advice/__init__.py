"""Advice: a catalogue of steps, the choice among them, and the checklist of good practice."""
