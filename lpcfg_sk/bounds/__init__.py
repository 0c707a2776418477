"""Sample-size and error bounds of the papers."""

from lpcfg_sk.bounds._spectral import (
    moment_error,
    parameter_errors,
    separability_report,
    spectral_error,
    spectral_sample_size,
)

__all__ = [
    "moment_error",
    "parameter_errors",
    "separability_report",
    "spectral_error",
    "spectral_sample_size",
]
