"""The guarantee of spectral learning: theorem 8 of the paper and its lemmas.

Symbols are those of Cohen, Stratos, Collins, Foster and Ungar (2014), appendix B.
Three slips of the text are corrected: lemma 12 has the exponents N and N + 1 of its
own proof (eq. 35 prints N − 1 and N); theorem 8 takes N + 1 where its last line
takes N, so that ε is met; and the number of words n belongs to the samples for the
moments of pre-terminals, as in the proof, not to those for their Ω^a.
"""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from lpcfg_sk.bounds._margin import between_0_and_1, not_negative, positive


def spectral_error(N, *, m, Delta, delta, kappa, gamma):
    r"""Bound on the error of a grammar whose parameters are nearly right (lemma 12).

    Parameters
    ----------
    N : int
        Number of binary rules of the trees.
    m : int
        Number of latent states.
    Delta, delta, kappa : float
        Errors of the tensors of binary rules, of the vectors of lexical rules, and
        of the root vectors.
    gamma : float
        Smallest probability of a binary rule with states,
        min t(a → b c, h₂, h₃ | a, h₁).

    Returns
    -------
    bound : float
        Upper bound of Σ ``|p̂(t) − p(t)|`` over all trees t with N binary rules and a
        given root nonterminal.

    Notes
    -----
    .. math:: m\Bigl((1+κ)(1+Δ/γ)^N (1+δ)^{N+1} - 1\Bigr)

    Examples
    --------
    >>> from lpcfg_sk.bounds import spectral_error
    >>> bound = spectral_error(1, m=2, Delta=1e-4, delta=1e-3, kappa=1e-3, gamma=0.1)
    >>> round(bound, 6)
    0.008012
    """
    positive(m=m, gamma=gamma)
    not_negative(N=N, Delta=Delta, delta=delta, kappa=kappa)
    log_growth = (
        np.log1p(kappa) + N * np.log1p(Delta / gamma) + (N + 1) * np.log1p(delta)
    )
    return float(m * np.expm1(log_growth))


def parameter_errors(
    *, m, n, sigma, xi, eps_omega_pre, eps_omega_in, eps_D, eps_d, eps_pi
):
    r"""Errors of the parameters that follow from errors of the moments (lemma 15).

    Parameters
    ----------
    m : int
        Number of latent states.
    n : int
        Number of words.
    sigma : float
        Smallest σ_m(Ω^a) over the nonterminals.
    xi : float
        Smallest σ_m(I^a), with I^a the mean features given the latent state.
    eps_omega_pre, eps_omega_in : float
        Errors of Ω^a in Frobenius norm, for pre-terminals (ε¹_Ω of the paper) and
        in-terminals (ε²_Ω).
    eps_D, eps_d, eps_pi : float
        Errors of D^{a → b c}, of all d^∞_{a → x} of a pre-terminal together, and of
        c¹_a.

    Returns
    -------
    errors : dict
        ``Delta``, ``delta`` and ``kappa``, the arguments of
        :func:`spectral_error`.

    Notes
    -----
    .. math::
        Δ &= \frac{16}{3ξ^2}\Bigl(\frac{ε^2_Ω}{σ^2} + \frac{ε_D}{3σ}\Bigr) \\
        δ &= 4\Bigl(\frac{ε^1_Ω}{σ^2} + \frac{ε_d\sqrt n}{3σ}\Bigr) \\
        κ &= \frac{2}{\sqrt 3}\frac{\sqrt m}{σ} ε_π

    under the condition that both errors of Ω^a are at most σ/3.

    Examples
    --------
    >>> from lpcfg_sk.bounds import parameter_errors
    >>> errors = parameter_errors(m=2, n=10, sigma=0.1, xi=0.2, eps_omega_pre=1e-4,
    ...                           eps_omega_in=1e-5, eps_D=1e-5, eps_d=1e-4,
    ...                           eps_pi=1e-3)
    >>> {name: round(error, 4) for name, error in errors.items()}
    {'Delta': 0.1378, 'delta': 0.0442, 'kappa': 0.0163}
    """
    positive(m=m, n=n, sigma=sigma, xi=xi)
    not_negative(
        eps_omega_pre=eps_omega_pre,
        eps_omega_in=eps_omega_in,
        eps_D=eps_D,
        eps_d=eps_d,
        eps_pi=eps_pi,
    )
    if max(eps_omega_pre, eps_omega_in) > sigma / 3:
        raise ValueError(
            f"the errors of Ω are {eps_omega_pre} and {eps_omega_in}; lemma 15 needs "
            f"both to be at most sigma / 3 = {sigma / 3:.3g}"
        )
    return {
        "Delta": 16 / (3 * xi**2) * (eps_omega_in / sigma**2 + eps_D / (3 * sigma)),
        "delta": 4 * (eps_omega_pre / sigma**2 + eps_d * n**0.5 / (3 * sigma)),
        "kappa": 2 * (m / 3) ** 0.5 / sigma * eps_pi,
    }


def moment_error(n_samples, *, n_nonterminals, delta):
    r"""Error of a moment estimated from independent samples (lemma 19).

    Parameters
    ----------
    n_samples : float
        Number of samples of the nonterminal (N_a, M_a), or of roots (R).
    n_nonterminals : int
        Number of nonterminals.
    delta : float
        Probability that some moment of the grammar is worse than its bound.

    Returns
    -------
    error : float
        Bound in Frobenius norm, for features of norm at most one.

    Notes
    -----
    .. math:: \sqrt{1/M} + \sqrt{(2/M) \log((2|N| + 1)/δ)}

    Examples
    --------
    >>> from lpcfg_sk.bounds import moment_error
    >>> round(moment_error(10_000, n_nonterminals=5, delta=0.05), 4)
    0.0428
    """
    positive(n_samples=n_samples, n_nonterminals=n_nonterminals)
    return float((1 + np.sqrt(2 * _log_events(n_nonterminals, delta))) / n_samples**0.5)


def spectral_sample_size(
    epsilon, delta, *, N, m, n, n_nonterminals, sigma, xi, gamma, constants=None
):
    r"""Samples after which the learnt distribution is close to the true one.

    Theorem 8: with this many samples, with probability at least 1 − δ, the sum of
    ``|p̂(t) − p(t)|`` over all trees with N binary rules is at most ε, for every root
    nonterminal.

    Parameters
    ----------
    epsilon : float
        The error ε, at most m.
    delta : float
        The probability δ of failure.
    N : int
        Number of binary rules of the trees.
    m, n, n_nonterminals : int
        Numbers of latent states, words and nonterminals.
    sigma, xi, gamma : float
        Smallest σ_m(Ω^a), smallest σ_m(I^a), and smallest probability of a binary
        rule with states. Features have norm at most one.
    constants : sequence of five float, default=None
        C₁ … C₅ of the theorem. None derives the numbers from lemmas 12, 15 and 19
        instead of the theorem's asymptotic form.

    Returns
    -------
    samples : dict
        ``omega_in`` and ``omega_pre``: samples of each in-terminal and each
        pre-terminal for its Ω^a (the theorem's N_a); ``moments_in`` and
        ``moments_pre``: for its D and d^∞ (M_a); ``roots``: R. Rounded up.

    Notes
    -----
    With L = log((2|N| + 1)/δ) the theorem's form is

    .. math::
        N_a &≥ C_1 L N^2 m^2 / (γ^2 ε^2 ξ^4 σ^4), & N_a &≥ C_2 L N^2 m^2/(ε^2 σ^4) \\
        M_a &≥ C_3 L N^2 m^2 / (γ^2 ε^2 ξ^4 σ^2), & M_a &≥ C_4 L N^2 m^2 n/(ε^2 σ^2)
        \\ R &≥ C_5 L N^2 m^3 / (ε^2 σ^2)

    for in-terminals on the left and pre-terminals on the right.

    Examples
    --------
    >>> from lpcfg_sk.bounds import spectral_sample_size
    >>> spectral_sample_size(0.1, 0.05, N=5, m=2, n=10, n_nonterminals=5, sigma=0.3,
    ...                      xi=0.5, gamma=0.05)["roots"]
    125...
    """
    positive(
        epsilon=epsilon,
        m=m,
        n=n,
        sigma=sigma,
        xi=xi,
        gamma=gamma,
        N=N,
        n_nonterminals=n_nonterminals,
    )
    if epsilon > m:
        raise ValueError(f"epsilon must be at most m={m}, got {epsilon}")
    if constants is not None:
        c1, c2, c3, c4, c5 = constants
        base = _log_events(n_nonterminals, delta) * (N * m / epsilon) ** 2
        rare = base / (gamma**2 * xi**4)
        needed = {
            "omega_in": c1 * rare / sigma**4,
            "omega_pre": c2 * base / sigma**4,
            "moments_in": c3 * rare / sigma**2,
            "moments_pre": c4 * base * n / sigma**2,
            "roots": c5 * base * m / sigma**2,
        }
        return {name: int(np.ceil(value)) for name, value in needed.items()}
    # Half of each parameter's error may come from Ω, half from the moments.
    share = epsilon / (4 * (N + 1) * m)
    errors = {
        "omega_in": min(3 / 32 * xi**2 * sigma**2 * gamma * share, sigma / 3),
        "omega_pre": min(sigma**2 / 8 * share, sigma / 3),
        "moments_in": 9 / 32 * xi**2 * sigma * gamma * share,
        "moments_pre": 3 / 8 * sigma / np.sqrt(n) * share,
        "roots": np.sqrt(3) / 2 * sigma / np.sqrt(m) * share,
    }
    spread = 1 + np.sqrt(2 * _log_events(n_nonterminals, delta))
    return {name: int(np.ceil((spread / e) ** 2)) for name, e in errors.items()}


def spectral_ratio_sample_size(
    epsilon, delta, *, m, R, Lambda, sigma, N=None, n_words=None
):
    r"""Samples after which probabilities are within a factor 1 ± ε of the true ones.

    Theorem 3 of the ACL 2012 paper, for a tree, and its version for marginals.

    Parameters
    ----------
    epsilon : float
        With probability 1 − δ, the ratios p̂/p (or μ̂/μ) are within ε of 1.
    delta : float
        The probability δ of failure.
    m : int
        Number of latent states.
    R : int
        Number of rules, binary and lexical.
    Lambda : float
        Smallest absolute value of an entry of c¹_a, d^∞_{a → x}, D^{a → b c} and
        (Σ^a)⁻¹; all entries of the first three and of Σ^a are in [−1, 1]. That of a
        known grammar is :func:`least_coefficient`.
    sigma : float
        Smallest σ_m(Ω^a).
    N : int, default=None
        Number of rules of the tree.
    n_words : int, default=None
        Number of words of the sentence whose marginals are meant, in place of `N`.
        All its trees have N = 2n − 1 rules; each of their values is within the factor,
        and so are the sums of them that marginals are.

    Returns
    -------
    samples : int
        Samples needed of each nonterminal, M_a.

    Notes
    -----
    .. math:: M_a ≥ \frac{128 m^2}{\bigl(\sqrt[2N+1]{1+ε} - 1\bigr)^2 Λ^2 σ^4}
        \log \frac{2mR}{δ}

    The projections are those of the exact Ω^a. The paper has only a sketch of a proof.

    Examples
    --------
    >>> from lpcfg_sk.bounds import spectral_ratio_sample_size
    >>> samples = spectral_ratio_sample_size(
    ...     0.1, 0.05, m=2, R=20, Lambda=0.01, sigma=0.3, N=5)
    >>> f"{samples:.3g}"
    '6.16e+13'
    """
    positive(epsilon=epsilon, m=m, R=R, Lambda=Lambda, sigma=sigma)
    between_0_and_1(delta=delta)
    if (N is None) == (n_words is None):
        raise ValueError("give either N, for a tree, or n_words, for marginals")
    N = 2 * n_words - 1 if N is None else N
    positive(N=N)
    # The root is so close to one that subtracting one would lose digits.
    spread = np.expm1(np.log1p(epsilon) / (2 * N + 1))
    needed = 128 * (m / (spread * Lambda * sigma**2)) ** 2
    return int(np.ceil(needed * np.log(2 * m * R / delta)))


def separability_report(estimator):
    """How well the features of a fitted learner tell latent states apart.

    Parameters
    ----------
    estimator : SpectralLPCFG or Pipeline that ends with one
        Fitted.

    Returns
    -------
    report : DataFrame
        One row per nonterminal, the one that limits the guarantee first:

        - ``count``: nodes in training;
        - ``m``: states used;
        - ``sigma_1``, ``sigma_m``: largest and m-th singular value of Ω^a, for
          features divided by their largest norm, as the theorem takes them;
        - ``gap``: σ_{m+1}/σ_m where σ_{m+1} was computed (see ``m_max``);
        - ``condition``: σ_1/σ_m;
        - ``xi``: lower bound of σ_m(I^a), whose latent states are not seen:
          σ_m(Ω^a) over the root mean square norm of the outside features;
        - ``noise``: the bound of lemma 19 on the error of Ω^a, with δ = 0.05;
        - ``limits``: noise is more than σ_m/3, so that the theory says nothing about
          this nonterminal at this size of treebank.

    Notes
    -----
    The theorem's σ is the smallest of the column ``sigma_m``. Constants are worst
    cases: a treebank for which most rows say "limits" may still give a good parser.

    Examples
    --------
    >>> from lpcfg_sk import SpectralLPCFG, make_parser
    >>> from lpcfg_sk.bounds import separability_report
    >>> from lpcfg_sk.datasets import load_toy
    >>> parser = make_parser(SpectralLPCFG(4)).fit(load_toy(60))
    >>> report = separability_report(parser)
    >>> bool((report["sigma_m"] <= report["sigma_1"]).all())
    True
    """
    model = estimator[-1] if hasattr(estimator, "steps") else estimator
    check_is_fitted(model)
    rows = []
    n_nonterminals = len(model.projections_)
    for a, projection in model.projections_.items():
        s, m, count = projection.singular_values, model.m_[a], model.counts_[a]
        if len(s) == 0:
            # A single state has constant features.
            sigma, xi = np.ones(1), 1.0
        else:
            sigma = s / (projection.phi_norm * projection.psi_norm)
            xi = s[m - 1] / (projection.phi_norm * projection.psi_rms)
        rows.append(
            {
                "nonterminal": a,
                "count": count,
                "m": m,
                "sigma_1": sigma[0],
                "sigma_m": sigma[m - 1],
                "gap": sigma[m] / sigma[m - 1] if len(s) > m else np.nan,
                "condition": sigma[0] / sigma[m - 1],
                "xi": xi,
                "noise": moment_error(count, n_nonterminals=n_nonterminals, delta=0.05)
                if count > 0
                else np.inf,
            }
        )
    report = pd.DataFrame(rows).set_index("nonterminal")
    report["limits"] = report["noise"] > report["sigma_m"] / 3
    return report.sort_values("sigma_m", kind="stable")


def _log_events(n_nonterminals, delta):
    if not 0 < delta < 1:
        raise ValueError(f"delta is a probability between 0 and 1, got {delta}")
    return np.log((2 * n_nonterminals + 1) / delta)
