"""A TLS context of the files that options name."""

import ssl
from typing import Any

from pystorm_source.errors import OptionError


def tls_context(prefix: str, options: Any) -> ssl.SSLContext:
    """Makes a context of ``options.tls_ca_file``, ``tls_cert_file`` and ``tls_key_file``, which may be None. Raises
    OptionError if one cannot be used; ``prefix``: of their keys, such as ``nats.tls``."""
    try:
        context = ssl.create_default_context(cafile=options.tls_ca_file)
        if getattr(options, "tls_cert_file", None):
            context.load_cert_chain(options.tls_cert_file, options.tls_key_file)
        return context
    except OSError as error:  # ssl.SSLError is one
        raise OptionError(
            f"a file of {prefix}.ca.file, {prefix}.cert.file and {prefix}.key.file cannot be used: {error}. Put it "
            f"there on driver and executors. Given: {options!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
