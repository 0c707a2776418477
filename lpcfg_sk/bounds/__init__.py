"""Sample-size and error bounds of the papers."""

from lpcfg_sk.bounds._distribution import (
    DistributionConstants,
    TailFit,
    count_derivations,
    distribution_constants,
    tail_fit,
)
from lpcfg_sk.bounds._exact_moments import (
    FeatureMoments,
    grammar_moments,
    least_coefficient,
)
from lpcfg_sk.bounds._margin import (
    Boundedness,
    Tightness,
    asymptotic_risk_gap,
    boundedness,
    entropy_bound,
    tightness,
)
from lpcfg_sk.bounds._noise import (
    TsybakovCounterexample,
    log_ratio_distance,
    moment_ratios,
    tsybakov_counterexample,
    tsybakov_gap,
)
from lpcfg_sk.bounds._sample_size import (
    deviation_probability,
    hidden_variable_log_covering_number,
    log_covering_number,
    margin_relative_deviation,
    margin_relative_sample_size,
    margin_sample_size,
    parameter_deviation_probability,
)
from lpcfg_sk.bounds._spectral import (
    moment_error,
    parameter_errors,
    separability_report,
    spectral_error,
    spectral_ratio_sample_size,
    spectral_sample_size,
)
from lpcfg_sk.bounds._svta import (
    SVTAWeightBounds,
    geometric_truncation_max_size,
    svta_weight_bounds,
    truncation_error,
    truncation_max_size,
    truncation_total_error,
    truncation_total_max_size,
)

__all__ = [
    "Boundedness",
    "DistributionConstants",
    "FeatureMoments",
    "SVTAWeightBounds",
    "TailFit",
    "Tightness",
    "TsybakovCounterexample",
    "asymptotic_risk_gap",
    "boundedness",
    "count_derivations",
    "deviation_probability",
    "distribution_constants",
    "entropy_bound",
    "geometric_truncation_max_size",
    "grammar_moments",
    "hidden_variable_log_covering_number",
    "least_coefficient",
    "log_covering_number",
    "log_ratio_distance",
    "margin_relative_deviation",
    "margin_relative_sample_size",
    "margin_sample_size",
    "moment_error",
    "moment_ratios",
    "parameter_deviation_probability",
    "parameter_errors",
    "separability_report",
    "spectral_error",
    "spectral_ratio_sample_size",
    "spectral_sample_size",
    "svta_weight_bounds",
    "tail_fit",
    "tightness",
    "truncation_error",
    "truncation_max_size",
    "truncation_total_error",
    "truncation_total_max_size",
    "tsybakov_counterexample",
    "tsybakov_gap",
]
