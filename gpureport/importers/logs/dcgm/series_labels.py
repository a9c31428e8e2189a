"""What labels of dcgm-exporter and of Kubernetes say of a whole run: its pod, namespace, container, job and nodes."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpureport.label_tags import LABEL_TAGS

_EXPORTER = re.compile(r"dcgm-?exporter", re.IGNORECASE)
_OF_POD = ("pod", "namespace", "container")
"""Labels that the scrape sets to the exporter itself where dcgm-exporter sets none, or is not honoured."""
_WHOLE = 0.95
"""Share of the samples that a value must hold for: queries reach a little over the ends of a job. Pragmatic."""
_LABELS = tuple(label for tag in LABEL_TAGS for label in tag.series_labels)


@dataclass(slots=True)
class SeriesLabels:
    """The samples of a run by the values of each label.

    Attributes:
        samples: samples in all.
        values: samples by label and value.
    """

    samples: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], samples: int) -> None:
        """Add a series."""
        self.samples += samples
        names_exporter = any(_EXPORTER.search(labels.get(label, "")) for label in _OF_POD)
        for label in _LABELS:
            value = labels.get(label, "")
            if value and not _EXPORTER.search(value) and not (names_exporter and label in _OF_POD):
                self.values.setdefault(label, Counter())[value] += samples

    def tags(self) -> tuple[tuple[str, str], ...]:
        """Return the tags that hold for the whole run; a run of several machines has all their names."""
        return tuple((name, text) for name, values in self._chosen() if (text := self._whole(name, values)))

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each label that does not hold for the whole run; it names nobody."""
        for name, values in self._chosen():
            if self._whole(name, values):
                continue
            if len(values) == 1:
                share = round(100 * values.total() / self.samples)
                yield f"Only {share}% of the samples name their {name}, so the run has no tag {name}."
            else:
                yield f"The samples are of {len(values)} {name}s, so the run has no tag {name}."

    def _chosen(self) -> Iterator[tuple[str, Counter[str]]]:
        """Yield each tag with the values of the first of its labels that is set anywhere."""
        for tag in LABEL_TAGS:
            values = next((self.values[label] for label in tag.series_labels if label in self.values), None)
            if values:
                yield tag.name, values

    def _whole(self, name: str, values: Counter[str]) -> str:
        """Return what holds for the whole run, empty where nothing does."""
        if name == "node":
            return ", ".join(sorted(values))
        value, samples = values.most_common(1)[0]
        return value if samples >= _WHOLE * self.samples else ""
