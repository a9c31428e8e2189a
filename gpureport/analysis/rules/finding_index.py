"""Findings by what they concern, so that none looks at all of them for each GPU or kind."""

from collections.abc import Iterable

from gpureport.findings import Finding


class FindingIndex:
    """Findings by kind and by device, each in their order."""

    def __init__(self, findings: Iterable[Finding], devices: Iterable[str]) -> None:
        """Sort findings in.

        Args:
            findings: the findings.
            devices: ids of all devices, which a finding without devices concerns.
        """
        self._by_kind: dict[str, list[Finding]] = {}
        self._by_device: dict[str, list[Finding]] = {device: [] for device in devices}
        everybody = tuple(self._by_device)
        for found in findings:
            self._by_kind.setdefault(found.kind, []).append(found)
            for device in dict.fromkeys(found.devices or everybody):
                self._by_device.setdefault(device, []).append(found)

    def list_of_kind(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of a kind."""
        return tuple(self._by_kind.get(kind, ()))

    def list_on_device(self, device: str) -> tuple[Finding, ...]:
        """Return the findings that concern a device, those without devices included."""
        return tuple(self._by_device.get(device, ()))
