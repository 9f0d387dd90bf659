"""Without the packages of the extras it is said what to install."""

import sys

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import installing
from pystorm_source.observe import OpenTelemetry, Prometheus


@pytest.mark.parametrize(
    ("callback", "module", "extra"),
    [(Prometheus, "prometheus_client", "prometheus"), (OpenTelemetry, "opentelemetry.metrics", "otel")],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, callback, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError) as refused:
        callback()
    assert f"{installing(extra)}. Given: no module '{module}'" in str(refused.value)
