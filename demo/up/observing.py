"""The settings for metrics and traces of `make up`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from demo.ports import free_ports

_SERVICES: Final = ("order", "credit", "inventory")


@dataclass(frozen=True, slots=True)
class Observing:
    """The settings for metrics and traces."""

    metrics_port: int | None = None
    """The broker's port for Prometheus; None without metrics."""
    has_traces: bool = False

    @classmethod
    def wanted(cls, *, metrics: bool, traces: bool) -> "Observing":
        """Returns the settings for the command line's options. Chooses a free port for the broker's metrics."""
        return cls(free_ports(1)[0] if metrics else None, traces)

    @property
    def broker_settings(self) -> Mapping[str, str]:
        """The broker's settings for its metrics."""
        if self.metrics_port is None:
            return {}
        return {"metricsExporterType": "PROM", "metricsPromExporterPort": str(self.metrics_port)}

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the services."""
        metrics = {f"{name.upper()}_METRICS_ENABLED": "true" for name in _SERVICES} if self.metrics_port is not None else {}
        return {**metrics, **({"TRACES_ENABLED": "true"} if self.has_traces else {})}

    def addresses(self, services: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the URLs of the metrics, keyed by name. `services` maps the names of the services to their addresses."""
        if self.metrics_port is None:
            return {}
        of_services = {f"metrics of the {name}": f"{url}/metrics" for name, url in services.items()}
        return {"metrics of the broker": f"http://127.0.0.1:{self.metrics_port}/metrics", **of_services}


NOTHING_OBSERVED: Final = Observing()
