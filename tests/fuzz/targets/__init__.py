"""Every reader that is fuzzed; a new one gets a target in the module of its kind."""

from tests.fuzz.targets import logs, stored, trackers, written_by_hand

TARGETS = {each.name: each for each in (*logs.TARGETS, *written_by_hand.TARGETS, *stored.TARGETS, *trackers.TARGETS)}
